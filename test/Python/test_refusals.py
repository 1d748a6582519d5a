"""Refusals by name that belong to no larger test: docs/errors lists them from here."""

import types

import numpy as np
import pytest

import attn
from attn import serving


def zeros(*shape, dtype="float32"):
    return np.zeros(shape, dtype)


def offsets(*numbers):
    return np.array(numbers, "int32")


def test_parts_of_merge():
    parts = [zeros(2, 3, 5, 8)] * 2
    with pytest.raises(attn.Error, match="^lses: expected 2 parts, as outputs has, got 1"):
        attn.merge(parts, [zeros(2, 3, 5)])
    with pytest.raises(attn.Error, match=r"^outputs: expected parts \(B, H, M, Dv\), \(T, H, Dv\) or \(M, Dv\), got shape"):
        attn.merge([zeros(8)], [zeros(1)])
    with pytest.raises(attn.Error, match="^outputs: expected a column or more, got shape"):
        attn.merge([zeros(2, 3, 5, 0)], [zeros(2, 3, 5)])


def test_lists_of_warm_up():
    with pytest.raises(attn.Error, match="^warm_up: expected a dict of arguments of attn.compile, got int"):
        attn.warm_up([3])


def test_workspaces(make):
    """Which are memory of one dimension."""
    q, k, v = make()
    kernel = attn.compile("float32", 16)
    with pytest.raises(attn.Error, match=r"^workspace: expected one dimension without gaps, got shape \(2, 8\)"):
        kernel(q, k, v, out=np.empty_like(q), workspace=zeros(2, 8, dtype="uint8"))


def sequences(q=(9, 4, 16), k=(12, 2, 16), cu_k=(0, 12), **more):
    v = zeros(*k)
    how = dict(max_seqlen_q=9, max_seqlen_k=12, **more)
    return serving.varlen_attention(zeros(*q), zeros(*k), v, offsets(0, 9), offsets(*cu_k), **how)


def test_sequences():
    with pytest.raises(attn.Error, match="^cu_seqlens_k: expected as many offsets as cu_seqlens_q has, 2, got 3"):
        sequences(cu_k=(0, 5, 12))
    with pytest.raises(attn.Error, match="^k: expected the columns of q, 16, got 8"):
        sequences(k=(12, 2, 8))
    with pytest.raises(attn.Error, match="^k: expected heads that divide those of q, 4, got 3"):
        sequences(k=(12, 3, 16))
    with pytest.raises(attn.Error, match="^softcap: expected a number above 0, or None, got -1"):
        sequences(softcap=-1.0)
    with pytest.raises(attn.Error, match=r"^out: expected float32 of shape \(9, 4, 16\), got float32 of shape \(9, 4, 8\)"):
        sequences(out=zeros(9, 4, 8))


def pages(cache=(6, 16, 2, 16), call=serving.paged_attention, **more):
    given = dict(page_table=zeros(2, 3, dtype="int32"), seqused_k=offsets(20, 30), **more)
    return call(zeros(2, 1, 4, 16), zeros(*cache), zeros(*cache), **given)


def test_pages():
    with pytest.raises(attn.Error, match="^k_cache: expected the columns of q, 16, got 8"):
        pages((6, 16, 2, 8))
    with pytest.raises(attn.Error, match="^k_cache: expected pages of at least 1 key, got 0"):
        pages((6, 0, 2, 16))
    with pytest.raises(attn.Error, match="^k_cache: expected heads that divide those of q, 4, got 3"):
        pages((6, 16, 3, 16))
    with pytest.raises(attn.Error, match="^shared_pages: expected 0 to 2, columns before the last, got 3"):
        pages(call=serving.cascade_attention, shared_pages=3)


def test_slots():
    lengths = offsets(3, 4)
    with pytest.raises(attn.Error, match="^cu_seqlens: expected 3 offsets, got 2"):
        serving.find_slots(lengths, offsets(0, 2), 2, page_size=16)
    with pytest.raises(attn.Error, match="^page_table: expected 2 rows, as cache_seqlens has, got 3"):
        serving.find_slots(lengths, offsets(0, 1, 2), 2, page_size=16, page_table=zeros(3, 2, dtype="int32"))
    table = zeros(5, 4)
    with pytest.raises(attn.Error, match="^rotary.interleaved: expected a bool, got 1"):
        serving.rotate(zeros(2, 4, 16), offsets(0, 1), serving.Rotary(table, table, 1))


def test_dumps_without_numpy(monkeypatch, tmp_path):
    """Nobody else of attn needs it: it is asked for as if it were not there."""
    real = attn._dump.importlib.import_module

    def no_numpy(name, *rest):
        if name == "numpy":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(attn._dump.importlib, "import_module", no_numpy)
    with pytest.raises(attn.Error, match=r"^dump: expected NumPy, which writes the files, got none \(pip install numpy\)"):
        with attn.dump(tmp_path):
            pass


def test_context_parallel():
    torch = pytest.importorskip("torch")
    from attn.integrations._context import _check_buffers
    from attn.integrations.torch import context_parallel_unshard

    x, y = torch.zeros(2, 8), torch.zeros(2, 6)
    with pytest.raises(attn.Error, match="^buffers: expected 8 positions, as the first one has, along dimension 1, got"):
        _check_buffers([x, y], [1, 1], set())
    with pytest.raises(attn.Error, match="^buffers: expected tensors without gradients: they are changed in place, got"):
        _check_buffers([x.requires_grad_()], [1], set())
    with pytest.raises(attn.Error, match="^load_balancer: expected None: context_parallel has the order of PyTorch's default"):
        context_parallel_unshard(None, [x], [1], load_balancer=object())


def test_biases_of_xformers():
    torch = pytest.importorskip("torch")
    from attn.integrations.xformers import memory_efficient_attention

    q = torch.zeros(1, 8, 2, 16)
    with pytest.raises(attn.Error, match="^attn_bias: expected a tensor, or one of .*, got a SimpleNamespace"):
        memory_efficient_attention(q, q, q, attn_bias=types.SimpleNamespace())


def test_tracing():
    torch = pytest.importorskip("torch")
    q = torch.zeros(1, 2, 8, 16)
    with pytest.raises(attn.Error, match="^attention: expected an eager call, got one inside torch.jit.trace"):
        torch.jit.trace(lambda x: attn.attention(x, x, x), q)


def test_tuning_of_foreign_arrays(make):
    class Foreign:
        """Only DLPack knows what it is."""

        def __init__(self, x):
            self.x = x

        def __dlpack__(self, **how):
            return self.x.__dlpack__(**how)

        def __dlpack_device__(self):
            return self.x.__dlpack_device__()

    with pytest.raises(attn.Error, match="^q: expected a NumPy array or a PyTorch tensor, got Foreign"):
        attn.tune(*(Foreign(x) for x in make()))
