"""Runs every pass on one program of each room: a wrong room is an error that names both.

What a pass requires and produces is read from its description in Passes.td, so that it and the code say the same.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOMS = {name: f"room {number} '{name}'" for name, number in {
    "problem": 1, "grid": 2, "online": 3, "tile": 4, "placed": 5, "async": 6, "thread": 7,
    "buffers": 4, "vectors": 5, "llvm": 6}.items()}
ORDER = list(ROOMS)
DOOR = r"(?:(nothing)|(a part of )?room \d `(\w+)`(?: to room \d `(\w+)`)?)"


def read_passes(lib: Path) -> dict:
    """Each flag with its two doors, as (is any room, is a part, first room, last room)."""
    passes = {}
    for path in sorted(lib.rglob("Passes.td")):
        for flag, text in re.findall(r'^def \w+ : Pass<"([\w-]+)"(.*?)^}$', path.read_text(), re.M | re.S):
            doors = [re.search(word + r":\s+" + DOOR, re.sub(r"\s+", " ", text)) for word in ("Requires", "Produces")]
            assert doors[0], f"{path}: {flag}: expected 'Requires: room N `name`'"
            assert doors[1] or doors[0][1], f"{path}: {flag}: expected 'Produces: room N `name`'"
            passes[flag] = [door.groups() if door else None for door in doors]
    return passes


def run(command: list, text: str) -> subprocess.CompletedProcess:
    return subprocess.run(command, input=text, capture_output=True, text=True)


def main(source: str, lib: str) -> int:
    programs = {}
    for room in ROOMS:
        done = run(["attn-translate", "-", f"--until={room}", "--cpu=x86-64-v3",
                    "--target=" + ("cpu" if room in ("buffers", "vectors", "llvm") else "cuda")], Path(source).read_text())
        assert done.returncode == 0, done.stderr
        programs[room] = done.stdout
    passes, wrong = read_passes(Path(lib)), 0
    together = "\n// -----\n".join(programs.values())
    for flag, (requires, produces) in passes.items():
        anything, is_part, first, last = requires
        if anything:
            continue
        door = ("a part of " if is_part else "") + ROOMS[first] + (f" to {ROOMS[last]}" if last else "")
        said = run(["attn-opt", "-", f"--{flag}", "--split-input-file", "-o", "/dev/null"], together).stderr
        got = re.findall(rf"error: {flag}: expected {re.escape(door)}, got (room \d '\w+')", said)
        # What is a part of a room includes what the rooms before it leave.
        right = ORDER[ORDER.index("tile" if is_part else first): ORDER.index(last or first) + 1]
        # The pool calls blocks of the LLVM dialect, so that all of a program may be in it.
        right += ["llvm"] * (first == "vectors")
        expected = [name for room, name in ROOMS.items() if room not in right]
        if got != expected:
            print(f"{flag}: expected {door} and errors for {expected}, got {got}\n{said}")
            wrong += 1
        if produces and not produces[1] and not is_part and flag not in ("emit-ptx", "tile-simulate"):
            done = run(["attn-opt", "-", f"--{flag}", f"--attn-verify-room=room={produces[2]}", "-o", "/dev/null"],
                       programs[last or first])
            if done.returncode:
                print(f"{flag}: expected {ROOMS[produces[2]]} behind it, got\n{done.stderr}")
                wrong += 1
    print(f"{len(passes)} passes, {len(programs)} rooms")
    return wrong != 0


sys.exit(main(*sys.argv[1:]))
