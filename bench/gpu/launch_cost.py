#!/usr/bin/env python3
"""What a call costs the host, from IR to a launched kernel, as JSON on standard output.

    PYTHONPATH=python python3 bench/gpu/launch_cost.py

Needs the attn package, its library and PyTorch with a GPU; no build tree. Compilations are those of fresh processes,
medians of several; PyTorch and the driver's context are there before the clock starts. Host times of launches are medians over
batches that end in a synchronisation outside the clock and fit the driver's queue. cpp_us and cpp_driver_us are without what
ctypes takes for a function that does nothing.
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


# The driver queues about 1024 launches and then waits for the GPU: what a longer batch of kernels that take longer than
# their launch measures is the kernel.
BATCH, ROUNDS = 200, 41


def time_host(calls, finish):
    """Microseconds of each call by the host's clock: medians of batches. The calls take turns, so that what else the
    machine does hits all of them."""
    samples = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, (function, *arguments) in calls.items():
            finish()
            start = time.perf_counter()
            for _ in range(BATCH):
                function(*arguments)
            samples[name].append((time.perf_counter() - start) / BATCH * 1e6)
    finish()
    return {name: statistics.median(times) for name, times in samples.items()}


def prototype(function, arguments):
    function.restype, function.argtypes = ctypes.c_int, arguments
    return function


def bind_driver(kernel, tensors, folder):
    """What attn_run asks of the driver, for the same kernel, tensors and stream: what keeps it valid, a function and its
    arguments."""
    import ptx_kernel

    from attn._library import Options, check, library

    ptx, plan = ctypes.c_char_p(), ctypes.c_char_p()
    with Options((("device", "cuda"),)) as options:
        check(library.attn_emit(kernel.source.encode(), options.handle, ctypes.byref(ptx), ctypes.byref(plan)))
    paths = [os.path.join(folder, name) for name in ("kernel.ptx", "kernel.json")]
    for path, text in zip(paths, (ptx, plan)):
        with open(path, "wb") as file:
            file.write(text.value)
        library.attn_string_free(text)
    call = ptx_kernel.PtxKernel(*paths).bind(tensors)
    ((config, function, pointers),) = call.launches
    launch = prototype(ptx_kernel.driver()["cuLaunchKernelEx"], [ctypes.c_void_p] * 4)
    return call, (launch, ctypes.cast(config, ctypes.c_void_p), function, ctypes.cast(pointers, ctypes.c_void_p), None)


def measure_calls(d, folder):
    import torch

    import attn
    from attn._library import Options, library
    from attn._tensors import Tensors, make_arguments

    finish = torch.cuda.synchronize
    q, k, v = (torch.zeros(1, 1, 1, d, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    kernel = attn.compile("bfloat16", d, causal=True, device="cuda")
    output = kernel(q, k, v)
    tensors = Tensors(kernel._plan.kernel)
    for x in (q, k, v, output):
        tensors.add_array(x, "tensor", 4, "bf16")
    stream = torch.cuda.current_stream().cuda_stream
    keep, driver = bind_driver(kernel, [q, k, v, output], folder)

    source, handle = kernel.source.encode(), ctypes.c_void_p()
    with Options((("device", "cuda:0"),)) as options:

        def find_again():
            library.attn_compile(source, options.handle, ctypes.byref(handle))
            library.attn_kernel_free(handle)

        find_again()
        memory = time_host({"memory": (find_again,)}, lambda: None)

    def run_causal(q, k, v):
        return attn.attention(q, k, v, causal=True)

    def run_sdpa(q, k, v):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    _, pointers, count, _ = make_arguments(kernel._plan.kernel.handle, tensors.tensors, stream)
    # As ctypes takes them without a conversion.
    native = (
        ctypes.c_void_p(kernel._plan.kernel.handle),
        ctypes.cast(pointers, ctypes.c_void_p),
        ctypes.c_size_t(count),
        stream,
    )
    # Functions that do nothing, called as the others are: what ctypes and the loop take.
    nothing = prototype(library["attn_abi_version"], library.attn_run.argtypes)
    us = time_host(
        {
            "cpp": (library.attn_run, *native),
            "nothing": (nothing, *native),
            "driver": driver,
            "python": (kernel, q, k, v),
            "python_attention": (run_causal, q, k, v),
            "empty_like": (torch.empty_like, q),
            "torch_sdpa": (run_sdpa, q, k, v),
        },
        finish,
    )
    del keep
    result = {
        # A call of the C interface, and the driver's share: its launch of the same kernel with the same parameters.
        "cpp_us": us["cpp"] - us["nothing"],
        "cpp_driver_us": us["driver"] - us["nothing"],
        "ctypes_us": us["nothing"],
        **{f"{name}_us": us[name] for name in ("python", "python_attention", "empty_like", "torch_sdpa")},
        "memory_us": memory["memory"],
    }
    return {name: round(value, 3) for name, value in result.items()}


def table(results):
    """The README's, in Markdown."""
    lines = [
        "| D | first call, ms (ours + driver's) | from disk, ms | again, us | launch from C++, us (driver's) | from Python, us |",
        "|---|---|---|---|---|---|",
    ]
    for result in results:
        cold, disk, calls = result["compilations"]["cold"], result["compilations"]["disk"], result["calls"]
        lines.append(
            f"| {result['head_dim']} | {cold['total_ms']:.0f} ({cold['compile_ms']:.0f} + {cold['driver_ms']:.0f}) "
            f"| {disk['total_ms']:.1f} | {calls['memory_us']:.1f} | {calls['cpp_us']:.1f} ({calls['cpp_driver_us']:.1f}) "
            f"| {calls['python_us']:.1f} |"
        )
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--head-dim", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--table", metavar="RESULTS", help="measure nothing: print the README's table of a list of results")
    arguments = parser.parse_args()
    if arguments.table:
        with open(arguments.table) as file:
            print(table(json.load(file)))
        return
    import torch

    import attn

    with tempfile.TemporaryDirectory() as folder:
        calls = measure_calls(arguments.head_dim, folder)
    print(f"calls: {calls}", file=sys.stderr, flush=True)
    result = {
        "device": torch.cuda.get_device_name(),
        "attn": attn.__version__,
        "torch": torch.__version__,
        "head_dim": arguments.head_dim,
        "calls": calls,
        "compilations": measure_compilations(arguments.head_dim, arguments.repeats),
    }
    json.dump(result, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
