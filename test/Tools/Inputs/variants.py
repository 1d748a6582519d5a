"""Compares the variants that a tool lists, on standard input, with their definitions in files, its arguments."""

import re
import sys
from pathlib import Path

DEFINITION = re.compile(r'^def Attn_\w+ : Attn_Attr<"\w+", "(\w+)"> \{\n  let summary = "(.+)";\n((?:.*\n)*?)\}', re.M)
defined = {}
for name, sentence, body in DEFINITION.findall("".join(Path(x).read_text() for x in sys.argv[1:])):
    parameters = re.search(r"let parameters = \(ins (.+)\);", body)
    defined[name] = (len(parameters.group(1).split(", ")) if parameters else 0, "Alignment" in body or "Placement" in body, sentence)
# No variant: it is on functions.
del defined["schedule"]

listed = {}
for name, form, sentence in re.findall(r"^  #attn\.(\w+) +#attn\.\w+(<.+?>)?: (.+)$", sys.stdin.read(), re.M):
    listed[name] = (len(form.split(", ")) if form else 0, "|" in form, sentence)
assert list(listed) == list(defined), (list(listed), list(defined))
for name in defined:
    assert listed[name] == defined[name], (name, listed[name], defined[name])
