#!/usr/bin/env python3
"""What a call costs the host, from IR to a launched kernel, as JSON on standard output.

    PYTHONPATH=python python3 bench/gpu/launch_cost.py

Needs the attn package, its library and PyTorch with a GPU; no build tree. Compilations are those of fresh processes,
medians of several; PyTorch and the driver's context are there before the clock starts. Host times of launches are medians over
batches that end in a synchronisation outside the clock.
"""

import argparse
import ctypes
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time


def compile_once(d, environment):
    """One compilation and its first launch, in a process that has imported PyTorch and nothing else."""
    os.environ.update(environment)
    import torch

    x = torch.zeros(1, 1, 64, d, device="cuda", dtype=torch.bfloat16)
    torch.cuda.synchronize()
    start = time.perf_counter()
    import attn

    imported = time.perf_counter()
    kernel = attn.compile("bfloat16", d, causal=True, device="cuda")
    loaded = time.perf_counter()
    kernel(x, x, x)
    launched = time.perf_counter()
    torch.cuda.synchronize()
    return {
        "import_ms": (imported - start) * 1e3,
        "total_ms": (launched - imported) * 1e3,
        "first_launch_ms": (launched - loaded) * 1e3,
        "compile_ms": kernel.compile_ms,
        "driver_ms": kernel.load_ms,
        "from_disk": kernel.is_from_disk,
    }


def run_alone(pool, d, **environment):
    return pool.apply_async(compile_once, (d, environment)).get(timeout=120)


def median_of(runs):
    return {
        key: round(statistics.median(run[key] for run in runs), 3) if key != "from_disk" else runs[0][key]
        for key in runs[0]
    }


def measure_compilations(d, repeats):
    # Importing PyTorch takes seconds: a server that has done so forks a fresh process for each run.
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(["torch"])
    with tempfile.TemporaryDirectory() as folder, server.Pool(1, maxtasksperchild=1) as pool:
        ours, drivers = os.path.join(folder, "attn"), os.path.join(folder, "driver")
        cold = {"ATTN_CACHE": "0", "CUDA_CACHE_DISABLE": "1"}
        warm = {"ATTN_CACHE": "1", "ATTN_CACHE_DIR": ours, "CUDA_CACHE_DISABLE": "0", "CUDA_CACHE_PATH": drivers}
        cases = {
            "cold": cold,
            "disk": warm,
            # The driver remembers, our own cache does not.
            "driver_cache_only": {**warm, "ATTN_CACHE": "0"},
            # Ours remembers, and the driver assembles.
            "ptx_from_disk_only": {**warm, "CUDA_CACHE_DISABLE": "1"},
        }
        result = {}
        for name, environment in cases.items():
            if name == "disk":
                run_alone(pool, d, **environment)
            result[name] = median_of([run_alone(pool, d, **environment) for _ in range(repeats)])
            print(f"{name}: {result[name]}", file=sys.stderr, flush=True)
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
    from attn._library import Options, library

    finish = torch.cuda.synchronize
    q, k, v = (torch.zeros(1, 1, 1, d, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    kernel = attn.compile("bfloat16", d, causal=True, device="cuda")
    kernel(q, k, v)
    plan = kernel._plan
    frame = plan.frames[-1]
    stream = torch.cuda.current_stream().cuda_stream

    source, handle = kernel.source.encode(), ctypes.c_void_p()
    with Options({"device": "cuda:0"}) as options:

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
    parser.add_argument("--repeats", type=int, default=3)
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
