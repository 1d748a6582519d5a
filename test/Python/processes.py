"""Programs that several processes run together."""

import os
import subprocess
import sys
import time
from pathlib import Path

import attn

IS_WHOLE = os.environ.get("ATTN_DISTRIBUTED") == "all"


def sample(*cases):
    """One of them, another at another time; all of them by `make test-distributed`."""
    return cases if IS_WHOLE else cases[int(time.time()) % len(cases) :][:1]


def run(folder, program, *arguments, count=2, timeout=300):
    """Runs the program, which prints "agreed" at its end, as ranks of torch.distributed."""
    (folder / "program.py").write_text(program)
    for output in run_file(folder / "program.py", *arguments, count=count, timeout=timeout):
        # Gloo of PyTorch 2.9 prints lines of its own.
        assert output.splitlines()[-1] == "agreed"


def run_file(path, *arguments, count, timeout=300, **variables):
    """What each rank of such a program prints. `variables` are of its environment."""
    command = [sys.executable, "-B", "-W", "ignore", str(path), *arguments]
    common = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(
            [os.path.dirname(os.path.dirname(attn.__file__)), str(Path(__file__).parent)]
        ),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(20000 + os.getpid() % 20000),
        "WORLD_SIZE": str(count),
        "OMP_NUM_THREADS": "1",
        **variables,
    }
    running = [
        subprocess.Popen(
            command,
            env={**common, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(count)
    ]
    outputs = []
    for process in running:
        try:
            output, errors = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            for each in running:
                each.kill()
            raise
        assert process.returncode == 0, errors[-3000:]
        outputs.append(output)
    return outputs
