# complete.zsh SCRIPT: what zsh would choose from after some beginnings.
compset() { PREFIX=${PREFIX#*=} }
compadd() {
  local -a matches
  if [[ $1 == -a ]]; then matches=(${(P)2}); else matches=(${@:#-*}); matches+=(${(M)@:#--[a-z]*}); fi
  print -rn -- "$matches "
}
script=$1
offer() {
  words=("$@")
  PREFIX=$2
  print -rn -- "[$*] "
  . $script
  print
}
offer attn-translate --unt
offer attn-translate --until=th
offer attn-run --target=sm_90
