"""Opens the page of the first argument, as a browser does, and prints its rooms, and the lines that each line came from."""

import base64
import json
import re
import sys
import zlib
from pathlib import Path

page = Path(sys.argv[1]).read_text()
assert len(page) < 1_500_000, f"expected at most 1.5 MB, got {len(page)}"
# Nothing is fetched: no address, and no file beside it.
assert not re.search(r"https?://|\bsrc=|<link|@import|url\(", page), "an address of another file"
assert '<meta name="viewport" content="width=device-width' in page
form, data = re.search(r'id="data" data-form="(\w+)">([^<]*)<', page).groups()
text = base64.b64decode(data)
found = json.loads(zlib.decompress(text) if form == "deflate" else text)
print("title", re.search("<title>(.*)</title>", page).group(1))
print("stopped", found["stopped"])
print(found["decisions"])
if "pictures" in found:
    pictures = found["pictures"]
    print("pictures", pictures["shape"])
    if "mask" in pictures:
        mask = pictures["mask"]
        print("mask", mask["rows"], mask["keys"], *mask["tile"], f"{mask['density']:.4f}")
        for line in mask["lines"]:
            print("tiles", line)
    print("timeline", pictures["timeline"].count("<rect") > 100, *(": ".join(x) for x in pictures["predicted"]), sep="; ")
    for note in pictures["notes"]:
        print("note", note)
before = []
for room in found["rooms"]:
    lines = room["text"].splitlines()
    print(f"room {room['number']} {room['name']}: {room['sentence']}")
    for line in lines:
        print(line)
    for line, *of in room["links"]:
        assert 1 <= line <= len(lines) and of and all(1 <= x <= len(before) for x in of), (room["name"], line, of)
        print(f"link {lines[line - 1].strip()[:60]} <- {' & '.join(before[x - 1].strip()[:60] for x in of)}")
    before = lines
