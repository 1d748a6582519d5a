"""Compares the ops that lib/Rooms lets into rooms 4 and 5 with the table of dialects/Tile/README.md.

Usage: check_rooms.py ROOT
"""

import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
code = (root / "lib" / "Rooms" / "TileRooms.cpp").read_text()
readme = (root / "dialects" / "Tile" / "README.md").read_text()


def read_code(room):
    """The names of the ops that a predicate lists, as in the text of a program."""
    listed = re.search(rf"refuseIn{room}\(Operation \*op\) \{{.*?!isa<(.*?)>", code, re.S)[1]
    return {re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower() for name in re.findall(r"(\w+)Op\b", listed)}


def read_table(room):
    """The names in the last cell of a room's row; whether they come on top of the ops of the room before."""
    cell = re.search(rf"^\| \d `{room}` \|.*\| ([^|]*) \|$", readme, re.M)[1]
    return set(cell.removeprefix("+ ").split(", ")), cell.startswith("+ ")


before = set()
for name, room in [("Tile", "tile"), ("Placed", "placed")]:
    expected = read_code(name)
    told, is_more = read_table(room)
    told |= before if is_more else set()
    for op in sorted(expected - told):
        print(f"{op} is in room {room}, and not in README.md")
    for op in sorted(told - expected):
        print(f"{op} is in README.md, and not in room {room}")
    before = expected
print(f"{len(before)} ops compared")
