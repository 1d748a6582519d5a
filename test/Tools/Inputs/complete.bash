# complete.bash SCRIPT: what bash would offer after some beginnings.
. "$1"
offer() {
  COMP_WORDS=("$@")
  COMP_CWORD=$(($# - 1))
  _attn
  shift
  echo "[$*] ${COMPREPLY[*]}"
}
offer attn-translate --unt
offer attn-translate --until = t
offer attn-run --target = sm_8
offer attn-opt --attn-tile-kv
offer attn-run --vers
