# Completes options of the tools in bash: source it in ~/.bashrc. Options and their values are read from the tool itself.
_attn() {
  local tool=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} option=
  # Bash splits words at '='.
  if [[ $word == = ]]; then
    option=${COMP_WORDS[COMP_CWORD - 1]} word=
  elif [[ $COMP_CWORD -gt 1 && ${COMP_WORDS[COMP_CWORD - 1]} == = ]]; then
    option=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  COMPREPLY=()
  if [[ -n $option ]]; then
    local values
    if [[ $option == --target ]]; then
      values=$(attn-translate --list 2>/dev/null | awk '/^targets/ { on = 1; next } /^[^ ]/ { on = 0 } on { print $1 }')
    else
      values=$("$tool" --help 2>/dev/null | awk -v option="$option=" '
        index($1, "-") == 1 { on = index($1, option) == 1; next }
        on && /^ +=/ { sub(/=/, "", $1); print $1 }')
    fi
    mapfile -t COMPREPLY < <(compgen -W "$values" -- "$word")
    [[ ${#COMPREPLY[@]} -gt 0 ]] || mapfile -t COMPREPLY < <(compgen -f -- "$word")
  elif [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$("$tool" --help 2>/dev/null | awk '$1 ~ /^--?[a-z]/ { sub(/=.*/, "=", $1); print $1 }') --version" -- "$word")
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  fi
}
complete -o filenames -F _attn attn-opt attn-reduce attn-run attn-translate
