#!/usr/bin/env python3
"""What a call costs the host, from IR to a launched kernel, as JSON on standard output.

    PYTHONPATH=python python3 bench/gpu/launch_cost.py

Needs the attn package, its library and PyTorch with a GPU; no build tree. Compilations are those of fresh processes,
medians of several; the driver's context is there before the clock starts. Host times of launches are medians over
batches that end in a synchronisation outside the clock.
"""

import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

# In a fresh process: one compilation, and its first launch.
COMPILE = """
import json, time, torch
x = torch.zeros(1, 1, 64, {d}, device="cuda", dtype=torch.bfloat16)
torch.cuda.synchronize()
start = time.perf_counter()
import attn
imported = time.perf_counter()
kernel = attn.compile("bfloat16", {d}, causal=True, device="cuda")
loaded = time.perf_counter()
kernel(x, x, x)
launched = time.perf_counter()
torch.cuda.synchronize()
ms = lambda a, b: (b - a) * 1e3
print(json.dumps(dict(
    import_ms=ms(start, imported), total_ms=ms(imported, launched), first_launch_ms=ms(loaded, launched),
    compile_ms=kernel.compile_ms, driver_ms=kernel.load_ms, from_disk=kernel.is_from_disk)))
"""


def run_alone(d, **environment):
    done = subprocess.run(
        [sys.executable, "-c", COMPILE.format(d=d)], env={**os.environ, **environment}, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def median_of(runs):
    return {
        key: round(statistics.median(run[key] for run in runs), 3) if key != "from_disk" else runs[0][key]
        for key in runs[0]
    }


def measure_compilations(d, repeats):
    with tempfile.TemporaryDirectory() as folder:
        ours, drivers = os.path.join(folder, "attn"), os.path.join(folder, "driver")
        cold = {"ATTN_CACHE": "0", "CUDA_CACHE_DISABLE": "1"}
        warm = {"ATTN_CACHE_DIR": ours, "CUDA_CACHE_DISABLE": "0", "CUDA_CACHE_PATH": drivers}
        result = {"cold": median_of([run_alone(d, **cold) for _ in range(repeats)])}
        run_alone(d, **warm)
        result["disk"] = median_of([run_alone(d, **warm) for _ in range(repeats)])
        # The driver remembers, our own cache does not.
        result["driver_cache_only"] = median_of([run_alone(d, **{**warm, "ATTN_CACHE": "0"}) for _ in range(repeats)])
        # Ours remembers, and the driver assembles.
        result["ptx_from_disk_only"] = median_of(
            [run_alone(d, **{**warm, "CUDA_CACHE_DISABLE": "1"}) for _ in range(repeats)]
        )
    return result


def time_host(call, finish, batch=400, batches=25):
    """Microseconds of one call, by the host's clock."""
    samples = []
    for _ in range(batches):
        finish()
        start = time.perf_counter()
        for _ in range(batch):
            call()
        samples.append((time.perf_counter() - start) / batch * 1e6)
    finish()
    return round(statistics.median(samples), 3)


def measure_calls(d):
    import torch

    import attn
    from attn import _library

    library, finish = _library.library, torch.cuda.synchronize
    q, k, v = (torch.zeros(1, 1, 1, d, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    kernel = attn.compile("bfloat16", d, causal=True, device="cuda")
    kernel(q, k, v)
    plan = kernel._plan
    frame = plan.frames[-1]
    stream = torch.cuda.current_stream().cuda_stream

    source, handle = kernel.source.encode(), ctypes.c_void_p()
    with _library.Options({"device": "cuda:0"}) as options:

        def find_again():
            library.attn_compile(source, options.handle, ctypes.byref(handle))
            library.attn_kernel_free(handle)

        find_again()
        memory_us = time_host(find_again, lambda: None)
    sdpa = torch.nn.functional.scaled_dot_product_attention
    return {
        "memory_us": memory_us,
        "c_launch_us": time_host(
            lambda: library.attn_run(plan.kernel.handle, frame.tensors, plan.count, stream), finish
        ),
        "empty_call_us": time_host(lambda: library.attn_abi_version(), finish),
        "python_kernel_us": time_host(lambda: kernel(q, k, v), finish),
        "python_attention_us": time_host(lambda: attn.attention(q, k, v, causal=True), finish),
        "torch_empty_us": time_host(lambda: torch.empty_like(q), finish),
        "torch_sdpa_us": time_host(lambda: sdpa(q, k, v, is_causal=True), finish),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--head-dim", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    import torch

    import attn

    result = {
        "device": torch.cuda.get_device_name(),
        "attn": attn.__version__,
        "torch": torch.__version__,
        "head_dim": arguments.head_dim,
        "calls": measure_calls(arguments.head_dim),
        "compilations": measure_compilations(arguments.head_dim, arguments.repeats),
    }
    json.dump(result, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
