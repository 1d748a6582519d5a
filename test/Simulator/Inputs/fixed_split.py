"""Rows of fixed splits on a simulated GPU: a row has the same bits alone, in batches, in caches with more room, and
beside other rows of its sequence.

    fixed_split.py ATTN_RUN FOLDER NAME..
"""

import random
import struct
import subprocess
import sys
from pathlib import Path

H, HKV, D, SPLIT = 4, 2, 64, 128
# Rows of a tile keep other tiles of 64 keys.
LENGTHS = [84, 277, 150]

SLOPE = """score(%s, %b, %h, %m, %n) {
      %slope = tensor.extract %slopes[%h] : tensor<?xf32>
      %i = arith.index_cast %n : index to i32
      %f = arith.sitofp %i : i32 to f32
      %x = arith.mulf %slope, %f : f32
      %t = arith.addf %s, %x : f32
      attn.yield %t : f32
    }"""
CAP = """score(%s, %b, %h, %m, %n) {
      %c = arith.constant 5.0 : f32
      %x = arith.divf %s, %c : f32
      %y = math.tanh %x : f32
      %t = arith.mulf %y, %c : f32
      attn.yield %t : f32
    }"""
WINDOW = """
      %far = arith.constant 90 : index
      %first = arith.subi %last, %far : index
      %near = arith.cmpi sge, %n, %first : index
      %keep = arith.andi %below, %near : i1"""
ALL = """
      %true = arith.constant true
      %keep = arith.andi %below, %true : i1"""
CASES = {
    "causal": ("", "", ALL),
    "window": ("", "", WINDOW),
    "sink": ("sink(%sink : tensor<?xf32>)", "", WINDOW),
    "slopes": ("", SLOPE, ALL),
    "softcap": ("", CAP, ALL),
}


def write_source(path, name, page=0):
    """Where `page` is a number of keys, keys and values lie in pages of so many."""
    sink, score, keep = CASES[name]
    kv = f"tensor<?x?x?x{D}xf16>"
    given, views = f"%k: {kv}, %v: {kv}", ""
    if page:
        pool, table = f"tensor<?x{page}x?x{D}xf16>", "tensor<?x?xi32>"
        given = f"%k_cache: {pool}, %v_cache: {pool}, %table: {table}"
        views = "\n".join(
            f"  %{x} = attn.paged %{x}_cache[%table] : {pool}, {table} -> {kv}" for x in "kv"
        )
    out = kv.replace("f16", "f32")  # Whose bits show more.
    types = f"{kv}, {kv}, {kv} -> {out}, tensor<?x?x?xf32>"
    path.write_text(f"""
func.func @attention(%q: {kv}, {given}, %lengths: tensor<?xi32>, %sink: tensor<?xf32>, %slopes: tensor<?xf32>)
    -> ({out}, tensor<?x?x?xf32>) {{
{views}
  %two = arith.constant 2 : index
  %rows = tensor.dim %q, %two : {kv}
  %o, %lse = attn.attention %q, %k, %v {sink}
    {score}
    mask(%b, %h, %m, %n) {{
      %length = tensor.extract %lengths[%b] : tensor<?xi32>
      %len = arith.index_cast %length : i32 to index
      %end = arith.addi %m, %len : index
      %last = arith.subi %end, %rows : index
      %below = arith.cmpi sle, %n, %last : index{keep}
      attn.yield %keep : i1
    }} : {types}
  return %o, %lse : {out}, tensor<?x?x?xf32>
}}
""")


def write(path, code, shape, numbers):
    kind = {"e": "f2", "f": "f4", "i": "i4"}[code]
    header = str({"descr": f"<{kind}", "fortran_order": False, "shape": tuple(shape)})
    header += " " * (-(len(header) + 11) % 64) + "\n"
    data = struct.pack(f"<{len(numbers)}{code}", *numbers)
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)


def read(path):
    data = path.read_bytes()
    return data[10 + struct.unpack("<H", data[8:10])[0] :]


class Case:
    """The most rows are the last of their sequence."""

    def __init__(self, run, folder, name, rows):
        self.run, self.folder, self.name, self.rows = run, folder, name, rows
        draw = random.Random(7)
        normal = lambda *shape: (  # noqa: E731
            [normal(*shape[1:]) for _ in range(shape[0])] if shape else draw.gauss(0, 1)
        )
        self.q = [normal(H, rows, D) for _ in LENGTHS]
        self.k, self.v = ([normal(HKV, n, D) for n in LENGTHS] for _ in "kv")

    def lay(self, pool, picked, room, page):
        """Keys or values of these sequences in a pool of pages, which lie in any order."""
        count = room // page
        order = random.Random(page).sample(range(len(picked) * count), len(picked) * count)
        pages = [[[[float("nan")] * D] * HKV for _ in range(page)] for _ in order]
        for b, i in enumerate(picked):
            for n in range(LENGTHS[i]):
                pages[order[b * count + n // page]][n % page] = [head[n] for head in pool[i]]
        return pages, order

    def call(self, picked, room, rows, options, page=0):
        """Bits of (output, lse) for each of some sequences: of heads, of rows."""
        write_source(self.folder / "source.mlir", self.name, page)
        nan, put = float("nan"), lambda name: self.folder / f"{name}.npy"
        flat = lambda x: [z for y in x for z in flat(y)] if isinstance(x, list) else [x]  # noqa: E731
        fill = lambda x: [head + [[nan] * D] * (room - len(head)) for head in x]  # noqa: E731
        q = [[head[-rows:] for head in self.q[i]] for i in picked]
        write(put("q"), "e", (len(picked), H, rows, D), flat(q))
        names = ["q", "k", "v", "lengths", "sink", "slopes"]
        for name, x in (("k", self.k), ("v", self.v)):
            if page:
                pages, order = self.lay(x, picked, room, page)
                write(put(f"{name}_cache"), "e", (len(order), page, HKV, D), flat(pages))
                write(put("table"), "i", (len(picked), room // page), order)
            else:
                write(put(name), "e", (len(picked), HKV, room, D), flat([fill(x[i]) for i in picked]))
        if page:
            names[1:3] = ["k_cache", "v_cache", "table"]
        write(put("lengths"), "i", (len(picked),), [LENGTHS[i] for i in picked])
        write(put("sink"), "f", (H,), [0.5, -1.0, 2.0, 0.0])
        write(put("slopes"), "f", (H,), [-0.5, -0.1, -0.02, 0.01])
        command = [self.run, str(self.folder / "source.mlir"), "--device=sim", "--sim-seeds=1", *options]
        for name in names:
            command.append(f"--input={name}={put(name)}")
        command += [f"--output={name}={put(name)}" for name in ("o", "lse")]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        found = []
        for name, size in (("o", 4 * D), ("lse", 4)):
            data = read(put(name))
            one = size * rows
            found.append([data[x : x + one] for x in range(0, len(data), one)])
        return [tuple(x[b * H : b * H + H] for x in found) for b in range(len(picked))]

    def cut(self, bits, rows):
        """Of the last rows."""
        o, lse = bits
        return [x[-4 * D * rows :] for x in o], [x[-4 * rows :] for x in lse]

    def count(self, options):
        """Sequences of calls whose bits differ from those of the sequence alone."""
        few = 3
        alone = [self.call([i], n, few, options)[0] for i, n in enumerate(LENGTHS)]
        differ = 0
        picked = [2, 0, 1, 2]
        for i, bits in zip(picked, self.call(picked, 512, few, options)):
            differ += bits != alone[i]
        for rows, page in ((1, 0), (self.rows, 0), (2, 16), (self.rows, 64)):
            for i, bits in enumerate(self.call([0, 1, 2], 320, rows, options, page)):
                least = min(rows, few)
                differ += self.cut(bits, least) != self.cut(alone[i], least)
        return differ


def main():
    run, folder, *names = sys.argv[1:]
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name in names or CASES:
        case = Case(run, Path(folder), name, rows=40)
        fixed = case.count([f"--fixed-split={SPLIT}"])
        print(f"{name}: {fixed} of 16 differ with a fixed split", flush=True)
        if name == "causal":
            free = case.count(["--block-n=64"])
            print(f"{name}: {free} of 16 differ without", flush=True)


if __name__ == "__main__":
    main()
