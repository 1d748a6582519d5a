"""What the fixtures of conftest.py see: results that PyTorch allocates lie between words that nobody may write."""

import ctypes
import gc

import pytest

import attn
import guarded_memory

torch = pytest.importorskip("torch")
# Whatever this file imports: the fixture has installed it before the first test.
guards = guarded_memory.find()
pytestmark = pytest.mark.skipif(guards is None, reason="no compiler")


@pytest.mark.parametrize("offset", [-1, -1024, 64, 64 + 1023])
@pytest.mark.parametrize("is_alive", [True, False])
def test_a_write_around_a_tensor_is_found(offset, is_alive):
    tensor = torch.empty(16)
    ctypes.memset(tensor.data_ptr() + offset, 0, 1)
    if not is_alive:
        del tensor
        gc.collect()
    assert guards.guard_check() == 1
    assert guards.guard_check() == 0


def test_tensors_begin_unwritten():
    assert torch.empty(3, 5).isnan().all()


def make_inputs(**kwargs):
    return [torch.randn(1, 2, 9, 8, **kwargs) for _ in range(3)]


def assert_guarded(*tensors):
    for x in tensors:
        assert guards.guard_has(x.untyped_storage().data_ptr()), tuple(x.shape)


def test_results_of_eager_calls():
    q, k, v = make_inputs()
    assert_guarded(*attn.attention(q, k, v, causal=True, return_lse=True))
    table = torch.randn(9)
    score = lambda s, b, h, m, n: s + table[n]
    assert_guarded(attn.attention(q, k, v, score=score))
    assert_guarded(*attn.gradient(q, k, v, torch.randn_like(q), score=score, wrt=[table]))


@pytest.mark.parametrize("backend", [None, "aot_eager", "inductor"])
def test_results_of_recorded_calls(backend):
    q, k, v = make_inputs(requires_grad=True)
    table = torch.randn(9, requires_grad=True)

    def call(q, k, v):
        return attn.attention(q, k, v, score=lambda s, b, h, m, n: s + table[n])

    if backend:
        call = torch.compile(call, backend=backend)
    output = call(q, k, v)
    assert_guarded(output)
    output.square().sum().backward()
    assert_guarded(q.grad, k.grad, v.grad, table.grad)
