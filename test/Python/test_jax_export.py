"""Programs of JAX that are kept: exported, serialized, and called by another process."""

import os
import subprocess
import sys

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.export
import jax.numpy as jnp

import attn.jax

OTHER = """
import sys, numpy, jax.export, attn.jax
x = numpy.load(sys.argv[2])
exported = jax.export.deserialize(open(sys.argv[1], "rb").read())
gradient = exported.vjp().call(x, numpy.ones_like(x))[0] if exported.has_vjp() else x
numpy.savez(sys.argv[3], output=exported.call(x), gradient=gradient)
"""


def attend(x):
    return attn.jax.attention(x, x, x, is_causal=True)


def export(**how):
    shape = jax.ShapeDtypeStruct((2, 9, 4, 16), jnp.float32)
    return jax.export.export(jax.jit(attend), **how)(shape)


def test_calls_of_an_exported_program():
    x = jax.random.normal(jax.random.key(1), (2, 9, 4, 16))
    exported = export(disabled_checks=attn.jax.export_checks())
    assert np.array_equal(exported.call(x), attend(x))
    assert exported.disabled_safety_checks == tuple(attn.jax.export_checks())


def test_another_process_calls_it(tmp_path):
    pytest.importorskip("flatbuffers")
    with pytest.raises(ValueError, match="no compatibility guarantees"):
        export().serialize()
    x = jax.random.normal(jax.random.key(2), (2, 9, 4, 16))
    kept = export(disabled_checks=attn.jax.export_checks()).serialize(vjp_order=1)
    (tmp_path / "kept").write_bytes(kept)
    np.save(tmp_path / "x.npy", x)
    names = [str(tmp_path / name) for name in ("kept", "x.npy", "results.npz")]
    subprocess.run([sys.executable, "-B", "-c", OTHER, *names], env=os.environ, check=True)
    found = np.load(names[2])
    assert np.abs(found["output"] - attend(x)).max() < 1e-6
    wanted = jax.grad(lambda x: attend(x).sum())(x)
    assert np.abs(found["gradient"] - wanted).max() < 1e-5
