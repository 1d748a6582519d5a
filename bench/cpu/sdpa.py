#!/usr/bin/env python3
"""attn and PyTorch's scaled_dot_product_attention on the CPU, alternating in one process on the same tensors.

Writes a JSON file with every round and prints a table. FLOPs are 4 B H M N D, half of that for causal.
"""

import argparse
import ctypes
import json
import math
import os
import platform
import statistics
import subprocess
import time

import torch

TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


def source(kind, d, causal):
    """The attention as a user writes it: every length is dynamic."""
    tensor = f"tensor<?x?x?x{d}x{kind}>"
    variants = "variants [#attn.causal<bottom_right>] " if causal else ""
    return (
        f"func.func @attention(%q: {tensor}, %k: {tensor}, %v: {tensor}) -> {tensor} {{\n"
        f"  %o = attn.attention %q, %k, %v {variants}: {tensor}, {tensor}, {tensor} -> {tensor}\n"
        f"  return %o : {tensor}\n}}\n"
    )


class Kernel:
    def __init__(self, library, text, threads):
        self.native = library
        self.handle = ctypes.c_void_p(library.attn_bench_compile(text.encode(), threads))
        error = library.attn_bench_error(self.handle).decode()
        if error:
            raise RuntimeError(error)
        self.compile_ms = library.attn_bench_compile_ms(self.handle)

    def bind(self, *tensors):
        """Flattens the tensors into memref descriptors and returns a call without arguments."""
        words = []
        for t in tensors:
            words += [t.data_ptr(), t.data_ptr(), 0, *t.shape, *t.stride()]
        values = (ctypes.c_int64 * len(words))(*words)
        slots = (ctypes.c_void_p * len(words))(
            *[ctypes.addressof(values) + 8 * i for i in range(len(words))]
        )

        def call():
            self.native.attn_bench_run(self.handle, slots)

        call.keep = (values, slots, tensors)
        return call


def load(path):
    library = ctypes.CDLL(path)
    library.attn_bench_compile.restype = ctypes.c_void_p
    library.attn_bench_compile.argtypes = [ctypes.c_char_p, ctypes.c_uint]
    library.attn_bench_error.restype = ctypes.c_char_p
    library.attn_bench_error.argtypes = [ctypes.c_void_p]
    library.attn_bench_compile_ms.restype = ctypes.c_double
    library.attn_bench_compile_ms.argtypes = [ctypes.c_void_p]
    library.attn_bench_run.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    library.attn_bench_peak.restype = ctypes.c_double
    library.attn_bench_peak.argtypes = [ctypes.c_uint, ctypes.c_bool]
    return library


def sustained(call, seconds):
    """Seconds per call over at least `seconds` of back-to-back calls."""
    count, start = 0, time.perf_counter()
    while True:
        call()
        count += 1
        elapsed = time.perf_counter() - start
        if elapsed >= seconds:
            return elapsed / count


def relative_error(x, reference):
    return ((x.double() - reference).norm() / reference.norm()).item()


def parse_arguments(description, rounds, seconds, shape):
    """What the benches of both passes take; the rest are their defaults."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--library", dest="native", required=True, help="libattn_bench.so")
    parser.add_argument("--out", help="write the result here")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--seconds", type=float, default=seconds, help="per candidate and round, at least one call")
    parser.add_argument("--types", default="f32,bf16")
    parser.add_argument("--dims", default="64,128")
    parser.add_argument("--shape", default=shape, help="B,H,S")
    return parser.parse_args()


def describe_run(threads):
    """Where and of what a result is, with no rows yet."""
    cpu = platform.processor()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as file:
            cpu = next((l.split(":")[1].strip() for l in file if l.startswith("model name")), cpu)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    return {
        "cpu": cpu,
        "threads": threads,
        "torch": torch.__version__,
        "commit": commit,
        "date": time.strftime("%Y-%m-%d"),
        "rows": [],
    }


def main():
    arguments = parse_arguments(__doc__, rounds=5, seconds=0.8, shape="1,8,4096")
    torch.set_num_threads(arguments.threads)
    library = load(arguments.native)
    b, h, s = map(int, arguments.shape.split(","))
    peaks = {
        "f32": library.attn_bench_peak(arguments.threads, False),
        "bf16": library.attn_bench_peak(arguments.threads, True),
    }
    result = describe_run(arguments.threads) | {"peak_gflops": peaks}
    header = f"{'type':5} {'D':>4} {'mask':6} {'attn':>8} {'torch':>8} {'ratio':>6} {'of peak':>8} {'compile':>8} {'error':>9} {'torch err':>9}"
    print(f"{result['cpu']}, {arguments.threads} threads, B={b} H={h} M=N={s}; GFLOP/s, median of {arguments.rounds} rounds")
    print(header)
    for kind in arguments.types.split(","):
        for d in map(int, arguments.dims.split(",")):
            for causal in (False, True):
                torch.manual_seed(d + causal)
                q, k, v = (torch.randn(b, h, s, d).to(TYPES[kind]) for _ in range(3))
                out = torch.full_like(q, math.nan)
                kernel = Kernel(library, source(kind, d, causal), arguments.threads)
                ours = kernel.bind(q, k, v, out)
                kept = {}

                def theirs():
                    kept["o"] = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

                flops = 4 * b * h * s * s * d * (0.5 if causal else 1)
                ours(), theirs()
                reference = torch.nn.functional.scaled_dot_product_attention(
                    q[:, :1].double(), k[:, :1].double(), v[:, :1].double(), is_causal=causal
                )
                error = relative_error(out[:, :1], reference)
                torch_error = relative_error(kept["o"][:, :1], reference)
                rounds = []
                for _ in range(arguments.rounds):
                    a = flops / sustained(ours, arguments.seconds) / 1e9
                    t = flops / sustained(theirs, arguments.seconds) / 1e9
                    rounds.append({"attn": a, "torch": t})
                row = {
                    "type": kind, "D": d, "mask": "causal" if causal else "full", "B": b, "H": h, "M": s, "N": s,
                    "attn": statistics.median(r["attn"] for r in rounds),
                    "torch": statistics.median(r["torch"] for r in rounds),
                    "ratio": statistics.median(r["attn"] / r["torch"] for r in rounds),
                    "compile_ms": kernel.compile_ms, "error": error, "torch_error": torch_error, "rounds": rounds,
                }
                peak = peaks["bf16"] if kind == "bf16" and peaks["bf16"] else peaks["f32"]
                row["of_peak"] = row["attn"] / peak
                result["rows"].append(row)
                print(
                    f"{kind:5} {d:4} {row['mask']:6} {row['attn']:8.1f} {row['torch']:8.1f} {row['ratio']:6.2f} "
                    f"{row['of_peak']:8.0%} {row['compile_ms']:6.0f}ms {error:9.1e} {torch_error:9.1e}",
                    flush=True,
                )
    if arguments.out:
        with open(arguments.out, "w") as file:
            json.dump(result, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
