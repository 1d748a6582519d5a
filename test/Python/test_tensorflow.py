"""attn for TensorFlow: forward and gradients beside a definition in TensorFlow's own operations, eagerly and in graphs.

Runs where TensorFlow is installed: make test-tensorflow.
"""

import os

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")

import attn  # noqa: E402
from attn.integrations.tensorflow import _to_numpy, _to_tensor, attention  # noqa: E402


def make(m=9, n=11, h=4, hkv=4, d=16, dtype="float32"):
    rng = np.random.default_rng(0)
    shapes = (2, h, m, d), (2, hkv, n, d), (2, hkv, n, d)
    return [tf.cast(tf.constant(rng.standard_normal(shape)), dtype) for shape in shapes]


def define(q, k, v, bias=None, keep=None, sink=None, scale=None):
    group = q.shape[1] // k.shape[1]
    k, v = tf.repeat(k, group, 1), tf.repeat(v, group, 1)
    s = tf.matmul(q, k, transpose_b=True) * (q.shape[3] ** -0.5 if scale is None else scale)
    s = s if bias is None else s + bias
    s = s if keep is None else tf.where(keep, s, -1e30)
    if sink is not None:
        s = tf.concat([s, tf.broadcast_to(sink[None, :, None, None], (*s.shape[:3], 1))], -1)
    lse = tf.reduce_logsumexp(s, -1)
    return tf.matmul(tf.nn.softmax(s)[..., : k.shape[2]], v), lse


def find_gradients(function, tensors):
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        output, lse = function(*tensors)
        loss = tf.reduce_sum(output**2) + tf.reduce_sum(lse)
    return [output, lse, *tape.gradient(loss, tensors)]


def check(ours, theirs, tensors, tolerance=2e-4):
    for mine, wanted in zip(find_gradients(ours, tensors), find_gradients(theirs, tensors)):
        assert mine.shape == wanted.shape and mine.dtype == wanted.dtype
        assert np.abs(mine - wanted).max() < tolerance


CAUSAL = tf.constant(np.tril(np.ones((9, 11), bool)))
CASES = {
    "plain": (["q", "k", "v"], {}, {}),
    "causal": (["q", "k", "v"], {"causal": "top_left"}, {"keep": CAUSAL}),
    "scale": (["q", "k", "v"], {"scale": 0.3}, {"scale": 0.3}),
    "keep": (["q", "k", "v"], {"keep": CAUSAL[None, None]}, {"keep": CAUSAL}),
    "bias": (["q", "k", "v", "bias"], {}, {}),
    "sink": (["q", "k", "v", "sink"], {}, {}),
    "all": (["q", "k", "v", "bias", "sink"], {"causal": "top_left", "scale": 0.3}, {"keep": CAUSAL, "scale": 0.3}),
}


@pytest.mark.parametrize("is_graph", [False, True], ids=["eager", "graph"])
@pytest.mark.parametrize("name", CASES)
def test_gradients(name, is_graph):
    names, mine, theirs = CASES[name]
    rng = np.random.default_rng(1)
    q, k, v = make(hkv=2)
    more = {"bias": rng.standard_normal((1, 4, 9, 11)), "sink": rng.standard_normal(4)}
    tensors = [q, k, v, *(tf.constant(more[x], "float32") for x in names[3:])]
    ours = lambda *x: attention(*x[:3], **dict(zip(names[3:], x[3:])), return_lse=True, **mine)  # noqa: E731
    if is_graph:
        ours = tf.function(ours)
    check(ours, lambda *x: define(*x[:3], **dict(zip(names[3:], x[3:])), **theirs), tensors)


def test_functions_read_arrays_of_numpy():
    slopes = np.float32([0.5, 0.25, 0.125, 0.0625])
    distance = np.abs(np.subtract.outer(np.arange(9), np.arange(11))).astype("float32")
    bias = tf.constant(-slopes[:, None, None] * distance)
    score = lambda s, b, h, i, j: s - slopes[h] * abs(i - j)  # noqa: E731
    check(
        lambda *x: attention(*x, score=score, mask=lambda b, h, i, j: j <= i, return_lse=True),
        lambda *x: define(*x, bias=bias, keep=CAUSAL),
        make(),
    )


@pytest.mark.parametrize("dtype, tolerance", [("float16", 5e-3), ("bfloat16", 4e-2)])
def test_types(dtype, tolerance):
    q, k, v = make(dtype=dtype)
    got = attention(q, k, v)
    assert got.dtype == dtype
    wanted = define(*(tf.cast(x, "float32") for x in (q, k, v)))[0]
    assert np.abs(tf.cast(got, "float32") - wanted).max() < tolerance


def test_memory_is_shared():
    """DLPack hands tensors over without a copy, and results too where they are aligned."""
    x = make()[0]
    first, second = (_to_numpy(x).__array_interface__["data"][0] for _ in range(2))
    assert first == second
    memory = np.ones(64, "float32")
    start = -memory.__array_interface__["data"][0] % 64 // 4
    for first in (start, start + 1):
        array = memory[first : first + 6].reshape(2, 3)
        again = _to_numpy(_to_tensor(array))
        is_same = np.shares_memory(again, array)
        assert is_same == (first == start) and (again == array).all()


def test_layouts_and_windows():
    q, k, v = make()
    swapped = [tf.transpose(x, (0, 2, 1, 3)) for x in (q, k, v)]
    got = attention(*swapped, layout="bshd", window=(3, 2), options={"threads": 1})
    wanted = attention(q, k, v, window=(3, 2))
    assert np.abs(tf.transpose(got, (0, 2, 1, 3)) - wanted).max() < 1e-6


def test_a_model_learns():
    dense = [tf.keras.layers.Dense(64) for _ in range(3)]
    x = tf.constant(np.random.default_rng(0).standard_normal((2, 9, 64)), "float32")
    optimizer, losses = tf.keras.optimizers.SGD(0.05), []

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            q, k, v = (tf.reshape(layer(x), (2, 9, 4, 16)) for layer in dense)
            output = tf.reshape(attention(q, k, v, causal=True, layout="bshd"), (2, 9, 64))
            loss = tf.reduce_mean((output - x) ** 2)
        variables = [w for layer in dense for w in layer.trainable_variables]
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    for layer in dense:
        layer.build((2, 9, 64))
    optimizer.build([w for layer in dense for w in layer.trainable_variables])
    for _ in range(20):
        losses.append(float(step()))
    assert losses[-1] < 0.9 * losses[0]


@pytest.mark.parametrize(
    "how, message",
    [
        ({"dtype": "float64"}, "^q: expected float32, float16 or bfloat16, got float64"),
        ({"rank": 3}, "^q: expected 4 dimensions, got shape"),
        ({"causal": "left"}, "^causal: expected"),
        ({"bias": tf.zeros((1, 1, 1, 9, 11))}, r"^bias: expected a shape that broadcasts to \(2, 4, 9, 11\), got \(1, 1"),
        ({"bias": tf.zeros((4, 9, 12))}, r"^bias: expected a shape that broadcasts to .*, got \(4, 9, 12\)"),
        ({"bias": tf.zeros((2, 9, 11))}, r"^bias: expected a shape that broadcasts to .*, got \(2, 9, 11\)"),
        ({"keep": CAUSAL[:8]}, r"^keep: expected a shape that broadcasts to .*, got \(8, 11\)"),
        ({"keep": CAUSAL, "layout": "bshd"}, r"^keep: expected a shape that broadcasts to \(2, 9, 4, 4\)"),
    ],
)
def test_refusals(how, message):
    how = dict(how)
    q, k, v = make(dtype=how.pop("dtype", "float32"))
    if how.pop("rank", 4) == 3:
        q = q[0]
    with pytest.raises(attn.Error, match=message):
        attention(q, k, v, **how)


@pytest.mark.parametrize("extent", [None, 9])
def test_tables_of_graphs_are_checked(extent):
    """Extents that are known when the graph is made then, and others when it runs."""
    q, k, v = make()
    of_bias = tf.TensorSpec((4, extent, None), "float32")
    whole = [tf.TensorSpec((2, 4, 9, 16), "float32"), *[tf.TensorSpec((2, 4, None, 16), "float32")] * 2]
    call = tf.function(lambda q, k, v, bias: attention(q, k, v, bias=bias), input_signature=[*whole, of_bias])
    bias = tf.random.normal((4, 9, 11))
    assert np.abs(call(q, k, v, bias) - define(q, k, v, bias)[0]).max() < 2e-4
    with pytest.raises(Exception, match="bias: expected a shape that broadcasts to"):
        call(q, k, v, bias[:, :, :10])
    wrong = tf.function(lambda q, k, v, bias: attention(q, k, v, bias=bias[:3]), input_signature=[*whole, of_bias])
    with pytest.raises(Exception, match=r"bias: expected a shape that broadcasts to \(2, 4, 9, None\)"):
        wrong(q, k, v, bias)


def test_scores_that_read_tensors_are_refused():
    """Their gradients would be lost."""
    q, k, v = make()
    slopes = tf.ones(4)
    with pytest.raises(attn.Error, match="score: expected arrays of NumPy, which are constants, got a tensor"):
        attention(q, k, v, score=lambda s, b, h, i, j: s - slopes[h])


def test_second_derivatives_are_refused():
    q, k, v = make()
    with pytest.raises(attn.Error, match="expected first derivatives, got a second one"):
        with tf.GradientTape() as outer:
            outer.watch(q)
            with tf.GradientTape() as inner:
                inner.watch(q)
                loss = tf.reduce_sum(attention(q, k, v) ** 2)
            gradient = inner.gradient(loss, q)
        outer.gradient(gradient, q)
