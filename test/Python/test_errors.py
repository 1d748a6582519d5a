"""What is refused, and in which words."""

import math
import os
import random
import subprocess
import sys

import numpy as np
import pytest

import attn

HERE = os.path.basename(__file__)


def raises(message, call, *arguments, code="invalid argument", **options):
    with pytest.raises(attn.Error) as error:
        call(*arguments, **options)
    text = str(error.value)
    assert message in text, text
    assert error.value.code == code
    assert "\n" not in text
    return error.value


def test_arguments(make):
    q, k, v = make()
    call = attn.attention
    raises("q: expected a NumPy array or PyTorch tensor, got list", call, [[1.0]], k, v)
    raises("v: expected a NumPy array or PyTorch tensor, got NoneType", call, q, k, None)
    raises("q: expected 4 dimensions, ", call, q[0], k, v)
    raises(
        "q: expected float16, bfloat16 or float32, got float64",
        call,
        *(x.astype("float64") for x in (q, k, v)),
    )
    raises("k: expected the type of q, float32, got float16", call, q, k.astype("float16"), v)
    raises(
        "k: expected 16 in dimension 3, which the function was compiled for, got shape (2, 2, 9, 8)",
        call,
        q,
        k[..., :8],
        v,
    )
    raises(
        "v: expected N=9 as in k in dimension 2, got shape (2, 2, 8, 16)", call, q, k, v[:, :, :8]
    )
    raises("k: expected B=2 as in q in dimension 0", call, q, k[:1], v[:1])
    raises("q: expected H to be a multiple of Hkv, got H=3 and Hkv=2", call, q[:, :3], k, v)
    raises("q: expected H to be a multiple of Hkv, got H=4 and Hkv=0", call, q, k[:, :0], v[:, :0])
    error = raises(
        "k: expected a contiguous last dimension, got a stride of 2",
        call,
        q[..., :8],
        k[..., ::2],
        v,
    )
    assert error.hint == "copy the tensor into row-major order"
    raises("q: expected a contiguous last dimension", call, q.swapaxes(2, 3), k, v)
    unaligned = np.frombuffer(bytes(q.nbytes + 2), "uint8")[2:].view("float32").reshape(q.shape)
    raises("q: expected data aligned to its elements of 4 bytes", call, unaligned, k, v)
    raises("q: expected float16, bfloat16 or float32, got >f4", call, q.astype(">f4"), k, v)


def test_options(make):
    inputs = make()
    raises(
        'causal: expected False, True, "top_left" or "bottom_right", got \'left\'',
        attn.attention,
        *inputs,
        causal="left",
    )
    raises(
        "window: expected None or (left, right) of distances, got 5",
        attn.attention,
        *inputs,
        window=5,
    )
    raises(
        "window: expected None or (left, right) of distances, got (-2, 0)",
        attn.attention,
        *inputs,
        window=(-2, 0),
    )
    raises('layout: expected "bhsd" or "bshd", got \'bsd\'', attn.attention, *inputs, layout="bsd")
    raises("options: expected device, cpu, threads", attn.attention, *inputs, options={"speed": 9})
    raises("cache: expected on or off, got '7'", attn.attention, *inputs, options={"cache": 7})
    raises(
        "options: expected no device, got 'cuda'",
        attn.attention,
        *inputs,
        options={"device": "cuda"},
    )
    raises(
        "device: expected cpu, cuda or cuda:NUMBER, got 'tpu'",
        attn.compile,
        "float32",
        64,
        device="tpu",
    )
    raises(
        "until: expected problem, grid or online, got 'tile'",
        attn.explain,
        "float32",
        64,
        until="tile",
    )
    raises(
        "sink: expected floats of shape (H,)",
        attn.attention,
        *inputs,
        sink=np.zeros((4, 1), "float32"),
    )
    raises(
        "sink: expected floats of shape (H,)", attn.attention, *inputs, sink=np.zeros(4, "int32")
    )
    raises("sink: expected H=4 as in q", attn.attention, *inputs, sink=np.zeros(3, "float32"))
    raises("scale: expected a number, got 'x'", attn.attention, *inputs, scale="x")
    raises("score: expected a function, got int", attn.attention, *inputs, score=3)
    raises(
        "until: expected problem, grid or online, got 'attic'",
        attn.explain,
        "float32",
        16,
        until="attic",
    )
    raises("head_dim: expected a number of columns from 1 on, got 0", attn.compile, "float32", 0)


def test_caches_do_not_decide(make):
    inputs = make()
    attn.attention(*inputs, causal=True)
    attn.attention(*inputs, window=(1, 0))
    attn.attention(*inputs, options={"cache": True})
    raises("causal: expected False, True", attn.attention, *inputs, causal=1)
    raises("causal: expected False, True", attn.attention, *inputs, causal=0)
    raises("window: expected None or (left", attn.attention, *inputs, window=(True, False))
    raises("cache: expected on or off, got '1'", attn.attention, *inputs, options={"cache": 1})


def test_options_of_other_types(make):
    inputs = make()
    raises("options: expected names, got 1", attn.attention, *inputs, options={1: 2})
    raises("options: expected a dict, got list", attn.attention, *inputs, options=[1])
    message = "options: expected a number, text or bool for splits, got list"
    raises(message, attn.attention, *inputs, options={"splits": [1]})


def test_integers_of_numpy(make):
    q, k, v = make()
    kernel = attn.compile("float32", np.int64(16), np.int32(16), window=(np.int64(3), None))
    assert np.array_equal(kernel(q, k, v), attn.attention(q, k, v, window=(3, np.int8(-1))))
    raises("head_dim: expected a number of columns", attn.compile, "float32", True)
    raises("head_dim: expected a number of columns", attn.compile, "float32", 8.0)


def test_tensors_in_the_place_of_functions(make):
    keep = np.ones((7, 9), bool)
    error = raises("mask: expected a function, got ndarray", attn.attention, *make(), mask=keep)
    assert "mask=lambda" in error.hint
    error = raises("score: expected a function, got", attn.attention, *make(), score=keep)
    assert "score=lambda" in error.hint


def test_captured_arrays_that_change_in_place(make):
    q, k, v = make()
    slopes = np.ones(4, "float32")
    kernel = attn.compile("float32", 16, score=lambda s, b, h, q, kv: s * slopes[h])
    kernel(q, k, v)
    slopes.dtype = "int32"
    raises("slopes: expected 1 dimensions of f32, as when it was compiled", kernel, q, k, v)
    slopes.dtype = "float32"
    slopes.shape = (2, 2)
    raises("slopes: expected 1 dimensions of f32, as when it was compiled", kernel, q, k, v)


def test_masked_arrays(make):
    q, k, v = make()
    masked = np.ma.masked_array(q, mask=q > 0)
    raises("q: expected an array without a mask", attn.attention, masked, k, v)


def test_kernels(make):
    q, k, v = make()
    kernel = attn.compile("float32", 16, scale=True)
    raises("scale: expected one, got none", kernel, q, k, v)
    raises("sink: expected none, got one", kernel, q, k, v, scale=1.0, sink=np.zeros(4, "float32"))
    raises(
        "q: expected elements of f32, got ndarray of float16",
        kernel,
        q.astype("float16"),
        k,
        v,
        scale=1.0,
    )
    raises("q: expected 16 in dimension 3", kernel, q[..., :8], k[..., :8], v, scale=1.0)


def refused(message, **functions):
    error = raises(message, attn.compile, "float32", 16, code="invalid kernel", **functions)
    file, _, line = error.where.rpartition(":")
    assert os.path.basename(file) == HERE and line.isdigit(), error.where
    return error


def test_what_cannot_be_traced():
    def branch(s, b, h, q, kv):
        if q > kv:
            return s
        return s * 2

    error = refused(
        "expected no decision on a value that is only known when the kernel runs", score=branch
    )
    assert error.where.endswith(f":{branch.__code__.co_firstlineno + 1}")
    assert "attn.where" in error.hint
    refused("expected no decision", mask=lambda b, h, q, kv: q >= kv and kv > 2)
    refused("expected no decision", mask=lambda b, h, q, kv: 0 <= q - kv < 5)
    refused("expected no conversion by float()", score=lambda s, b, h, q, kv: math.tanh(s))
    refused("expected no conversion by int()", score=lambda s, b, h, q, kv: s + int(q))
    refused("expected a number or a symbol, got str", score=lambda s, b, h, q, kv: s + "1")
    refused("AttributeError", score=lambda s, b, h, q, kv: s.arctan())
    refused(
        "expected a function that attn can compile, got numpy.arctan",
        score=lambda s, b, h, q, kv: np.arctan(s),
    )
    refused("expected an integer constant below 2^62", mask=lambda b, h, q, kv: q < 1 << 70)
    refused("expected a divisor other than 0", mask=lambda b, h, q, kv: q // 0 == 1)
    refused("expected bools or integers beside &, got a float", score=lambda s, b, h, q, kv: s & 1)
    refused(
        "expected a bool as the condition, got a float",
        score=lambda s, b, h, q, kv: attn.where(s, 1, 2),
    )
    refused("expected an array, got one value", score=lambda s, b, h, q, kv: sum(s))


def test_random_numbers():
    generator = np.random.default_rng(0)
    draws = [random.random, lambda: random.uniform(0, 1), np.random.rand, generator.random]
    torch = sys.modules.get("torch")
    if torch is not None:
        draws += [lambda: torch.rand(()), lambda: torch.randn(()).item()]
    for draw in draws:
        functions = dict(score=lambda s, b, h, q, kv: s * draw())
        message = "score or mask: expected a function without random numbers"
        raises(message, attn.compile, "float32", 16, code="invalid kernel", **functions)


def test_interrupted_while_compiling():
    """Ctrl-C is answered at once, and the compiler goes on to its end."""
    code = """if True:
        import os, signal, threading, time
        import attn

        def score(s, b, h, i, j):
            for _ in range(300):
                s = attn.tanh(s)
            return s

        # Programs that a shell starts in the background ignore it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            attn.compile("float32", 16, score=score)
        except KeyboardInterrupt:
            print("attn" in [thread.name for thread in threading.enumerate()])
        print(attn.compile("float32", 16).device)
    """
    done = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "True\ncpu\n"), done.stderr


def test_what_is_returned():
    refused("score: expected a value, got None", score=lambda s, b, h, q, kv: None)
    refused("score: expected a float, got a bool", score=lambda s, b, h, q, kv: q > kv)
    refused("mask: expected a bool, got a float", mask=lambda b, h, q, kv: q / 2)
    refused("mask: expected a bool, got a int", mask=lambda b, h, q, kv: q)
    refused("missing 1 required positional argument", mask=lambda s, b, h, q, kv: q > kv)
    refused("(it is called as mask(b, h, q, kv))", mask=lambda i, j: i > j)
    refused("(it is called as score(s, b, h, q, kv))", score=lambda s, i, j: s)


table = np.zeros((4, 9), "float32")
wide = np.zeros((4, 1025), "float32")
other = np.zeros((4, 7), "float32")


def test_rows_of_captured_arrays():
    refused("expected a row of 1 to 1024 elements", mask=lambda b, h, q, kv: (wide[h] == q).any())
    refused("expected one element, got a row of 9", mask=lambda b, h, q, kv: table[h] == kv)
    torch = pytest.importorskip("torch")
    refused(
        "expected rows of one length, got 9 and 7",
        score=lambda s, b, h, q, kv: s + torch.dot(table[h], other[h]),
    )
    refused(
        "expected a function of elements or any, all, sum, prod, mean, amax, amin, dot of a row, got "
        "torch.cumsum",
        score=lambda s, b, h, q, kv: torch.cumsum(table[h], 0),
    )


def test_captured_arrays(make):
    refused("table: expected 2 indices, got 3", score=lambda s, b, h, q, kv: table[h, q, kv])
    refused(
        "expected one element, got a row of 9",
        score=lambda s, b, h, q, kv: s + table[h],
    )
    refused(
        "table: expected one element, got an array that lacks 2 indices",
        score=lambda s, b, h, q, kv: s + table,
    )
    refused("table: expected one element", score=lambda s, b, h, q, kv: table[h])
    refused("table: expected an integer index, got slice", score=lambda s, b, h, q, kv: table[h, :])
    refused(
        "table: expected an integer index in dimension 1, got a float",
        score=lambda s, b, h, q, kv: table[h, s],
    )
    refused(
        "table: expected an index of a captured array, got .sum",
        score=lambda s, b, h, q, kv: table.sum(),
    )
    refused("table: expected no len()", score=lambda s, b, h, q, kv: s + len(table))
    strange = np.zeros(4, "complex64")
    refused("strange: expected elements of float16", score=lambda s, b, h, q, kv: strange[h])
    floats = attn.assume_sorted(np.zeros(9, "float32"))
    refused("floats: expected sorted integers", mask=lambda b, h, q, kv: floats[q] == floats[kv])
    raises("expected a NumPy array or PyTorch tensor, got list", attn.tensor, [1, 2])
    q, k, v = make(n=10)
    raises(
        "table: expected a shape of at least (0, 10), which is read, got (4, 9)",
        attn.attention,
        q,
        k,
        v,
        score=lambda s, b, h, q, kv: s + table[h, -10],
    )
    raises(
        "table: expected at least N=10 elements in dimension 1",
        attn.attention,
        q,
        k,
        v,
        score=lambda s, b, h, q, kv: s + table[h, kv],
    )
    raises(
        "table: expected a shape of at least (0, 13), which is read, got (4, 9)",
        attn.attention,
        q,
        k,
        v,
        score=lambda s, b, h, q, kv: s + table[h, 12],
    )


def test_hidden_arrays():
    """Where an array cannot be seen, the error says what to do."""
    hidden = {"slopes": np.zeros(4, "float32")}
    error = refused("", score=lambda s, b, h, q, kv: s * hidden["slopes"][h])
    assert "attn.tensor" in error.hint
    shown = {"slopes": attn.tensor(hidden["slopes"])}
    attn.compile("float32", 16, score=lambda s, b, h, q, kv: s * shown["slopes"][h])


def test_symbols_outside(make):
    raises(
        "expected attn.query_length inside a score or mask function",
        lambda: attn.query_length + 1,
        code="invalid kernel",
    )


def test_words_of_other_attentions(make):
    q, k, v = make(n=10)
    for word, here in (
        ("is_causal", 'causal="top_left"'),
        ("attn_mask", "mask=lambda b, h, i, j: keep[b, h, i, j]"),
        ("softcap", "attn.tanh(s / c)"),
        ("window_size", "window=(left, right)"),
    ):
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{word}'") as caught:
            attn.attention(q, k, v, **{word: 1})
        assert here in str(caught.value)
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'colour'$"):
        attn.attention(q, k, v, colour=1)


def test_arrays_that_are_made_inside():
    torch = pytest.importorskip("torch")
    refused(
        "expected an array that attn can see, got one that is made inside of the function (make it "
        "outside",
        score=lambda s, b, h, q, kv: s + torch.ones(4, 256)[h, q],
    )
    refused(
        "expected an integer index in dimension 1, got a float (convert it by attn.to_int(x)",
        score=lambda s, b, h, q, kv: table[h, s],
    )
