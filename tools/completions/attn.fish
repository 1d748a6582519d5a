# Completes options of the tools in fish: put it into ~/.config/fish/completions, once for each tool, or source it. Options and
# their values are read from the tool itself.
function __attn_complete
  set -l tool (commandline -opc)[1]
  set -l word (commandline -ct)
  if string match -q -- '--target=*' $word
    attn-translate --list 2>/dev/null | awk '/^targets/ { on = 1; next } /^[^ ]/ { on = 0 } on { print "--target=" $1 }'
  else if string match -q -- '-*=*' $word
    $tool --help 2>/dev/null | awk -v option=(string replace -r '=.*' '=' -- $word) '
      index($1, "-") == 1 { on = index($1, option) == 1; next }
      on && /^ +=/ { sub(/=/, "", $1); print option $1 }'
  else if string match -q -- '-*' $word
    $tool --help 2>/dev/null | awk '$1 ~ /^--?[a-z]/ { sub(/=.*/, "=", $1); print $1 }'
    echo --version
  end
end
for tool in attn-opt attn-reduce attn-run attn-translate
  complete -c $tool -a '(__attn_complete)'
end
