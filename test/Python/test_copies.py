"""Copies, deep copies and pickles."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import attn
import reference
from attn._library import Options


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_kernels(make, duplicate):
    q, k, v = make()
    slopes = np.float32([1, 2, 3, 4])
    kernel = attn.compile(
        "float32", 16, score=lambda s, b, h, q, kv: s * slopes[h], options={"block_n": 16}
    )
    wanted = reference.attention(q, k, v, score=lambda s, b, h, q, kv: s * slopes[h])[0]
    twin = duplicate(kernel)
    assert twin.source == kernel.source and "block_n = 16" in twin.explain()
    for x in (kernel._plan, kernel._plan.kernel):
        duplicate(x)
    gc.collect()
    reference.check(kernel(q, k, v), wanted)
    del kernel
    gc.collect()
    reference.check(twin(q, k, v), wanted)


def test_a_deep_copy_reads_arrays_of_its_own(make):
    q, k, v = make()
    model = {"slopes": np.float32([1, 2, 3, 4])}
    slopes = model["slopes"]
    model["kernel"] = attn.compile("float32", 16, score=lambda s, b, h, q, kv: s * slopes[h])
    twin = copy.deepcopy(model)
    assert twin["kernel"]._plan is model["kernel"]._plan
    before = twin["kernel"](q, k, v)
    slopes[:] = 0
    assert np.array_equal(twin["kernel"](q, k, v), before)
    twin["slopes"][:] = 0
    assert np.array_equal(twin["kernel"](q, k, v), model["kernel"](q, k, v))


def test_options_and_errors():
    options = Options((("threads", "1"),))
    for twin in (copy.deepcopy(options), pickle.loads(pickle.dumps(options))):
        assert twin.handle.value != options.handle.value
        twin.close()
    options.close()
    error = pickle.loads(pickle.dumps(attn.Error("a", "b", "c", "d")))
    assert (error.code, error.message, error.hint, error.where) == ("a", "b", "c", "d")


def test_captured_arrays_do_not_live_on(make):
    inputs = make()
    bias = np.zeros((7, 9), "float32")
    dead = weakref.ref(bias)
    attn.attention(*inputs, score=lambda s, b, h, q, kv: s + 0.75 * bias[q, kv])
    del bias
    gc.collect()
    assert dead() is None
