"""Milliseconds of the first call of an attention in a process, by kind of call, and of preparing all kernels.

    bench/gpu/first_call.py [--json results.json]

Each number is of a fresh process: neither attn nor the driver has a cache on disk. The second call of a kind that another
kernel serves compiles that kernel; a second call of the same kind compiles nothing.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

# (batch, heads, key heads, rows, keys) at D = 128.
CALLS = {
    "prompt": (1, 32, 8, 2048, 2048),
    "decoding": (1, 32, 8, 1, 8192),
    "few rows": (1, 32, 32, 100, 8192),
    "caption": (2, 16, 16, 4096, 77),
}
PROGRAM = """
import json, sys, time
import torch, attn
shapes, causal, wanted = json.loads(sys.argv[1])
made = [[torch.randn(*x, device="cuda").bfloat16() for x in
         ((b, h, m, 128), (b, k, n, 128), (b, k, n, 128))] for b, h, k, m, n in shapes]
torch.cuda.synchronize()
times = []
for given in made:
    start = time.perf_counter()
    attn.attention(*given, causal=causal)
    torch.cuda.synchronize()
    times.append(1e3 * (time.perf_counter() - start))
if wanted == "all":
    kernel = attn.compile("bfloat16", 128, causal=causal, device="cuda", options={"lazy": True})
    start = time.perf_counter()
    kernel.prepare()
    times.append(1e3 * (time.perf_counter() - start))
print(json.dumps(times))
"""


def run(shapes, causal, wanted=""):
    environment = {**os.environ, "ATTN_CACHE": "0", "CUDA_CACHE_DISABLE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps([shapes, causal, wanted])],
        capture_output=True, text=True, env=environment, check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", help="where to write the numbers")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    import torch

    results = {"device": torch.cuda.get_device_name(), "rows": []}
    for causal in (False, True):
        for name, shape in CALLS.items():
            first, second = zip(*(run([shape, shape], causal) for _ in range(arguments.runs)))
            results["rows"].append(
                {"call": name, "causal": causal, "first_ms": statistics.median(first), "second_ms": statistics.median(second)}
            )
            print(results["rows"][-1], flush=True)
        of_all = [run([CALLS["prompt"]], causal, "all")[-1] for _ in range(2)]
        results["rows"].append({"call": "prepare all", "causal": causal, "first_ms": min(of_all)})
        print(results["rows"][-1], flush=True)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
