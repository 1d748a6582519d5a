#!/usr/bin/env python3
"""Random attentions against NumPy: on the CPU through the C interface, in the simulator and the interpreter by attn-run.

    fuzz_attention.py --bin build/dev/bin --minutes 1 [--device cpu,sim,interpreter] [--seed N] [--count N]

A process of its own runs each batch, so that a crash names its program. What fails is written to --out with its inputs.
"""

import argparse
import ctypes
import os
import subprocess
import sys
import tempfile
import time

import merge
import numpy as np
import program as fuzz

# No program comes twice.
os.environ["ATTN_CACHE"] = "0"

# The largest error, relative to the larger of 1 and the value: what the types round, times the length of the sums.
TOLERANCE = {"f32": 5e-5, "f16": 4e-3, "bf16": 3e-2}
DL_TYPES = {"f32": (2, 32), "f16": (2, 16), "bf16": (4, 16), "i1": (6, 8), "i8": (0, 8), "i32": (0, 32),
            "i64": (0, 64), "index": (0, 64)}


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class Failure(Exception):
    pass


def pack(array, kind):
    """The bytes of an argument of this type."""
    if kind == "bf16":
        return (np.ascontiguousarray(array, np.float32).view(np.uint32) >> 16).astype(np.uint16)
    kinds = {"f32": np.float32, "f16": np.float16, "i1": np.uint8, fuzz.REFUSED: np.int16, **fuzz.INTEGERS}
    return np.array(array, dtype=kinds[kind], order="C")


def unpack(array, kind):
    return (array.astype(np.uint32) << 16).view(np.float32) if kind == "bf16" else array


def describe(array, kind):
    shape = (ctypes.c_int64 * array.ndim)(*array.shape)
    strides = (ctypes.c_int64 * array.ndim)(*(s // array.itemsize for s in array.strides))
    code, bits = DL_TYPES[kind]
    return Tensor(array.ctypes.data, 1, 0, array.ndim, code, bits, 1, shape, strides, 0)


def rearrange(array, rng):
    """The same elements in another order of memory, with the last dimension's next to each other."""
    if array.ndim != 4 or rng.random() < 0.5:
        return array
    order = [*rng.permutation(3), 3]
    return np.ascontiguousarray(array.transpose(order)).transpose(np.argsort(order))


class Library:
    """The C interface, without the Python package: that has tests of its own."""

    def __init__(self, path):
        self.c = ctypes.CDLL(path)
        self.c.attn_last_message.restype = ctypes.c_char_p

    def check(self, code):
        if code != 0:
            raise Failure(f"error {code}: {self.c.attn_last_message().decode()}")

    def compile(self, program):
        options, kernel = ctypes.c_void_p(), ctypes.c_void_p()
        self.check(self.c.attn_options_create(ctypes.byref(options)))
        for key, value in program.options.items():
            self.check(self.c.attn_options_set(options, key.encode(), str(value).encode()))
        try:
            self.check(self.c.attn_compile(program.text().encode(), options, ctypes.byref(kernel)))
        finally:
            self.c.attn_options_free(options)
        return kernel

    def run(self, kernel, program, env, wanted, rng):
        tensors = []
        for name, kind in program.arguments():
            array = pack(env[name], kind or "f32")
            tensors.append((rearrange(array, rng), kind or "f32"))
        results = []
        for array, (_, kind) in zip(wanted, program.results):
            results.append((rearrange(pack(np.full(array.shape, 777.0), kind), rng), kind))
        described = [describe(*tensor) for tensor in tensors + results]
        pointers = (ctypes.POINTER(Tensor) * len(described))(*(ctypes.pointer(t) for t in described))
        self.check(self.c.attn_run(kernel, pointers, ctypes.c_size_t(len(described)), None))
        return [unpack(array, kind) for array, kind in results]


def draw(seed, device):
    """Program `seed` of a device."""
    if device != "sim" and np.random.default_rng([seed, 3]).random() < 0.08:
        return merge.Merge(seed)
    return fuzz.Program(seed, gpu=device == "sim")


def compare(got, wanted, program):
    for (name, _), g, w in zip(program.results, got, wanted):
        g = np.asarray(g, np.float64)
        if g.shape != w.shape:
            raise Failure(f"{name}: expected shape {w.shape}, got {g.shape}")
        finite = np.isfinite(w)
        if not np.array_equal(g[~finite], w[~finite]):
            raise Failure(f"{name}: expected {w[~finite][:4]}, got {g[~finite][:4]}")
        error = np.abs(g[finite] - w[finite]) / np.maximum(1, np.abs(w[finite]))
        if error.size and not error.max() <= TOLERANCE[program.kind]:
            raise Failure(f"{name}: error {error.max():.3g} of {program.kind}, "
                          f"{np.count_nonzero(~(error <= TOLERANCE[program.kind]))} of "
                          f"{error.size} elements")


def run_tool(arguments, device, program, env, extents, wanted):
    """One call by attn-run, which reads and writes files."""
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/f.mlir", "w", encoding="utf-8") as file:
            file.write(program.text())
        shape = ",".join(f"{letter}={extent}" for letter, extent in extents.items() if letter not in program.fixed)
        command = [f"{arguments.bin}/attn-run", f"{folder}/f.mlir", f"--device={device}"]
        command += ["--shape", shape] if shape and program.has_letters else []
        for c in program.captures:
            for axis, extent in enumerate(np.shape(env[c.name])):
                command += ["--shape", f"{c.name}.{axis}={extent}"] if isinstance(c.dims[axis], str) else []
        for name, kind in program.arguments():
            if kind is None:
                command += ["--input", f"{name}={env[name]}"]
                continue
            array = pack(env[name], kind)
            array = array.astype(bool) if kind == "i1" else array.view("V2") if kind == "bf16" else array
            np.save(f"{folder}/{name}.npy", array)
            command += ["--input", f"{name}={folder}/{name}.npy"]
        for i, (name, _) in enumerate(program.results):
            command += ["--output", f"{name}={folder}/result{i}.npy"]
        command += ["--sim-seeds=2"] if device == "sim" else []
        command += [f"--{key}={value}" for key, value in program.options.items() if device == "sim"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode != 0:
            raise Failure(f"{device}: exit {done.returncode}: {done.stderr.strip()[-600:]}")
        got = [np.load(f"{folder}/result{i}.npy") for i in range(len(wanted))]
        return [unpack(x.view(np.uint16), "bf16") if x.dtype.kind == "V" else x for x in got]


def try_one(arguments, library, device, seed):
    """Compiles program `seed` and calls it; returns the number of calls. A type that no caller can pass is refused by name."""
    program = draw(seed, device)
    if not program.refused:
        return call(arguments, library, device, seed, program)
    try:
        call(arguments, library, device, seed, program)
    except Failure as failure:
        if "expected argument" not in str(failure) or program.refused not in str(failure):
            raise
        return 0
    raise Failure(f"expected {program.refused} to be refused, got numbers")


def call(arguments, library, device, seed, program):
    """Compiles the program and calls it; returns the number of calls."""
    rng = np.random.default_rng([seed, 1])
    kernel = library.compile(program) if device == "cpu" else None
    calls = 3 if device == "cpu" else 1
    for _ in range(calls):
        extents = program.extents(rng, 140 if device == "cpu" else 70)
        if device == "interpreter":
            extents.update({x: program.fixed.get(x, min(extents[x], y)) for x, y in (("B", 2), ("M", 33)) if x in extents})
        env = program.inputs(rng, extents)
        wanted = program.evaluate(env)
        if device == "cpu":
            got = library.run(kernel, program, env, wanted, rng)
        else:
            got = run_tool(arguments, device, program, env, extents, wanted)
        compare(got, program.evaluate(env, given=got), program)
    if kernel:
        library.c.attn_kernel_free(kernel)
    return calls


def work(arguments, device, first, count):
    """A batch, in a process of its own: one line before each program and one about what is wrong."""
    library = Library(arguments.native) if device == "cpu" else None
    for seed in range(first, first + count):
        print(f"at {seed}", flush=True)
        try:
            calls = try_one(arguments, library, device, seed)
            print(f"done {calls}", flush=True)
        except Failure as failure:
            print(f"wrong {failure}".replace("\n", " "), flush=True)


def report(arguments, device, seed, reason):
    os.makedirs(arguments.out, exist_ok=True)
    path = f"{arguments.out}/{device}-{seed}.mlir"
    program = draw(seed, device)
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"// {device}, program {seed}, options {program.options}: {reason}\n{program.text()}")
    print(f"FOUND {device} {seed}: {reason}: {path}", flush=True)


def run_batch(arguments, device, first, count, totals):
    command = [sys.executable, "-B", __file__, "--bin", arguments.bin, "--library", arguments.native, "--device", device,
               "--first", str(first), "--count", str(count), "--worker"]
    seed, answered = first, True
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        for line in child.stdout:
            word, _, rest = line.strip().partition(" ")
            if word == "at":
                seed, answered = int(rest), False
            elif word in ("done", "wrong"):
                answered = True
                totals["programs"] += 1
                totals["calls"] += int(rest) if word == "done" else 0
            if word == "wrong":
                totals["found"] += 1
                report(arguments, device, seed, rest)
        errors = child.stderr.read()
    if child.returncode != 0 or not answered:
        totals["found"] += 1
        report(arguments, device, seed, f"exit {child.returncode}: {errors.strip()[-300:]}".replace("\n", " "))
    return seed + 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--bin", required=True, help="where the tools are")
    parser.add_argument("--library", dest="native", help="libattn.so")
    parser.add_argument("--device", default="cpu,sim,interpreter")
    parser.add_argument("--seed", type=int, help="the first program (default: a fresh one)")
    parser.add_argument("--count", type=int, help="programs of each device (default: any number)")
    parser.add_argument("--minutes", type=float, help="(default: 1)")
    parser.add_argument("--out", default="fuzz-findings")
    parser.add_argument("--first", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        work(arguments, arguments.device, arguments.first, arguments.count)
        return 0
    seed = arguments.seed if arguments.seed is not None else int.from_bytes(os.urandom(4), "little") * 1000
    print(f"seed: {seed}", flush=True)
    minutes = arguments.minutes or (0 if arguments.count else 1)
    start, found = time.monotonic(), 0
    devices = arguments.device.split(",")
    state = {device: {"next": seed, "programs": 0, "calls": 0, "found": 0} for device in devices}
    sizes = {"cpu": 40, "sim": 2, "interpreter": 5}
    while any(not arguments.count or s["next"] < seed + arguments.count for s in state.values()):
        for device, totals in state.items():
            left = arguments.count - (totals["next"] - seed) if arguments.count else sizes[device]
            if left > 0:
                totals["next"] = run_batch(arguments, device, totals["next"], min(left, sizes[device]), totals)
        if minutes and time.monotonic() - start > minutes * 60:
            break
    for device, totals in state.items():
        print(f"{device}: {totals['programs']} programs, {totals['calls']} calls, {totals['found']} findings")
        found += totals["found"]
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
