"""Calls and layers of Keras with attn in their place, beside Keras's own: run by test_keras.py with one backend."""

import sys

import keras
import numpy as np

import attn
from attn.integrations import keras as ours

BACKEND = keras.backend.backend()
rng = np.random.default_rng(0)


def make(m=9, n=11, h=4, d=16, dtype="float32"):
    return [keras.ops.convert_to_tensor(rng.standard_normal((2, x, h, d)), dtype) for x in (m, n, n)]


def compare(got, wanted, tolerance=2e-5):
    got, wanted = (keras.ops.convert_to_numpy(keras.ops.cast(x, "float32")) for x in (got, wanted))
    assert got.shape == wanted.shape
    assert abs(got - wanted).max() < tolerance, abs(got - wanted).max()


def refused(message, call):
    try:
        call()
    except attn.Error as error:
        assert str(error).startswith(message), error
    else:
        raise AssertionError(f"expected: {message}")


theirs = keras.ops.dot_product_attention
bias = rng.standard_normal((1, 4, 9, 11)).astype("float32")
keep = rng.random((2, 1, 9, 11)) > 0.3
keep[..., 0] = True
for how in ({}, {"is_causal": True}, {"scale": 0.3}, {"bias": bias}, {"mask": keep}):
    q, k, v = make()
    wanted = theirs(q, k, v, **how)
    with ours.patch():
        got = keras.ops.dot_product_attention(q, k, v, **how)
        compare(got, wanted)
        compare(keras.ops.dot_product_attention(q, k, v, flash_attention=True, **how), wanted)
    compare(theirs(q, k, v, **how), wanted, 1e-7)
q, k, v = make()
compare(
    ours.dot_product_attention(q, k, v, bias=bias, mask=keep),
    theirs(q, k, v, bias=keras.ops.where(keep, bias, -1e9)),
)
if BACKEND != "jax":
    # JAX has no float64 unless it is asked for.
    compare(ours.dot_product_attention(*make(dtype="float64")), theirs(*make(dtype="float64")), 10)
compare(ours.dot_product_attention(*(keras.ops.cast(x, "bfloat16") for x in (q, k, v))), theirs(q, k, v), 0.05)

# A model that learns: the same losses.
x, y = rng.standard_normal((8, 9, 32)).astype("float32"), rng.standard_normal((8, 9, 32)).astype("float32")
losses = []
for is_ours in (False, True):
    keras.utils.set_random_seed(1)
    patched = ours.patch() if is_ours else None
    calls = [0]
    if is_ours:
        inner = ours._ATTEND[BACKEND]

        def count(*arguments):
            calls[0] += 1
            return inner(*arguments)

        ours._ATTEND[BACKEND] = count
    inputs = keras.Input((9, 32))
    layer = keras.layers.MultiHeadAttention(4, 8, flash_attention=None)
    model = keras.Model(inputs, layer(inputs, inputs, use_causal_mask=True))
    model.compile(optimizer="sgd", loss="mse", jit_compile=False)
    losses.append(model.fit(x, y, epochs=3, batch_size=4, verbose=0, shuffle=False).history["loss"])
    if is_ours:
        assert calls[0] > 0
        ours._ATTEND[BACKEND] = inner
        patched.undo()
assert np.allclose(*losses, rtol=1e-4), losses

refused("attn_logits_soft_cap: expected None, got 5.0", lambda: ours.dot_product_attention(q, k, v, attn_logits_soft_cap=5.0))
refused("bias: expected a shape that broadcasts to", lambda: ours.dot_product_attention(q, k, v, bias=bias[:, :3]))
refused("mask: expected a shape that broadcasts to", lambda: ours.dot_product_attention(q, k, v, mask=keep[:, :, :, :3]))
keras.backend.backend = lambda: "openvino"
refused("backend: expected torch, jax or tensorflow, got openvino", lambda: ours.dot_product_attention(q, k, v))
print("agreed", BACKEND)
sys.stdout.flush()
