"""Programs that AOTInductor compiles ahead, run by a process that never saw their Python."""

import os
import shutil
import subprocess
import sys

import pytest

import attn

torch = pytest.importorskip("torch")

N = 41


class Model(torch.nn.Module):
    """One call without captured tensors, and one with."""

    def __init__(self):
        super().__init__()
        self.bias = torch.nn.Buffer(torch.randn(N))

    def forward(self, q, k, v):
        bias = self.bias
        hidden = attn.attention(q, k, v, causal="top_left")
        return attn.attention(hidden, k, v, score=lambda s, b, h, i, j: s + bias[j]) + 1


PROGRAM = """
import sys, torch, attn.integrations.torch
inputs, wanted = torch.load(sys.argv[2])
with torch.profiler.profile() as profile:
    got = torch._inductor.aoti_load_package(sys.argv[1])(*inputs)
assert torch.allclose(got, wanted, atol=1e-5), (got - wanted).abs().max()
print("served", sum(event.name == "attn::forward_plain" for event in profile.events()))
"""


@pytest.mark.long
@pytest.mark.skipif(
    not (os.environ.get("CXX") or shutil.which("g++")), reason="Inductor finds no compiler of C++"
)
def test_a_package_runs_elsewhere(tmp_path):
    pytest.importorskip("torch._inductor")
    model, inputs = Model(), tuple(torch.randn(2, 4, n, 16) for n in (37, N, N))
    program = torch.export.export(model, inputs)
    text = str(program.graph)
    assert text.count("attn.forward.default") == 2
    path = torch._inductor.aoti_compile_and_package(
        program, package_path=str(tmp_path / "model.pt2")
    )
    torch.save((inputs, model(*inputs)), tmp_path / "tensors")
    done = subprocess.run(
        [sys.executable, "-B", "-W", "ignore", "-c", PROGRAM, path, str(tmp_path / "tensors")],
        env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(attn.__file__))},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split() == ["served", "2"]
