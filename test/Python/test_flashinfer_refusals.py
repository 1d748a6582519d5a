"""What attn.integrations.flashinfer refuses, by the name of the argument."""

import pytest

import attn

torch = pytest.importorskip("torch")
from attn.integrations import flashinfer  # noqa: E402
from flashinfer_batch import WORKSPACE, Batch  # noqa: E402
from ragged_reference import seeded, to_int32  # noqa: E402, F401

DECODE = dict(pos_encoding_mode="NONE", q_data_type=torch.float32)


@pytest.mark.parametrize(
    "how, words",
    [
        ({"pos_encoding_mode": "ROPE"}, 'pos_encoding_mode: expected "NONE", "ROPE_LLAMA" or "ALIBI"'),
        ({"pos_encoding_mode": "ROPE_LLAMA", "rope_theta": 0.0}, "rope_theta: expected a number above"),
        ({"pos_encoding_mode": "ALIBI", "logits_soft_cap": 2.0}, "logits_soft_cap: expected None"),
        ({"q_data_type": torch.float8_e4m3fn}, "q_data_type: expected float16"),
        ({"kv_data_type": torch.float16}, "kv_data_type: expected that of the queries"),
        ({"fixed_split_size": 3}, "fixed_split_size: expected a multiple of 2 pages of 8 keys, or None, got 3"),
        ({"fixed_split_size": 0}, "fixed_split_size: expected a multiple of 2 pages of 8 keys, or None, got 0"),
        ({"window_right": 2}, "window_right: expected 0"),
        ({"window_left": 1.5}, "window_left: expected a number of keys"),
        ({"q_len_per_req": 0}, "q_len_per_req: expected 1 or more"),
    ],
    ids=lambda x: next(iter(x)) if isinstance(x, dict) else "",
)
def test_plans_that_are_refused(how, words):
    batch = Batch([9], 8)
    wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(WORKSPACE)
    with pytest.raises(attn.Error, match=words):
        wrapper.plan(*batch.lists, 4, 2, 16, 8, **{**DECODE, **how})


@pytest.mark.parametrize(
    "how, words",
    [
        ({"q": torch.zeros(2, 4, 16)}, r"q: expected torch.float32 of shape \(1, 4, 16\)"),
        ({"q": torch.zeros(1, 4, 16).half()}, "q: expected torch.float32"),
        ({"paged_kv_cache": torch.zeros(3, 2, 4, 2, 16)}, "paged_kv_cache: expected pages of"),
        ({"paged_kv_cache": torch.zeros(3, 8, 2, 16)}, r"paged_kv_cache: expected \(k_cache"),
        ({"kv_cache_sf": torch.zeros(1)}, "kv_cache_sf: expected None"),
        ({"skip_softmax_threshold_scale_factor": 1.0}, "skip_softmax_threshold_scale_factor"),
        ({"k_scale": torch.ones(1)}, "k_scale: expected a number"),
        ({"window_left": 3}, r"window_left: expected that of plan\(\)"),
        ({"q_len_per_req": 2}, r"q_len_per_req: expected that of plan\(\), 1"),
        ({"out": torch.zeros(1, 4, 8)}, "out: expected torch.float32 of shape"),
    ],
    ids=lambda x: next(iter(x)) if isinstance(x, dict) else "",
)
def test_runs_that_are_refused(how, words):
    batch = Batch([9], 8)
    wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(WORKSPACE)
    with pytest.raises(attn.Error, match=r"run: expected a call after plan\(\)"):
        wrapper.run(torch.zeros(1, 4, 16), batch.cache)
    wrapper.plan(*batch.lists, 4, 2, 16, 8, **DECODE)
    given = {"q": torch.zeros(1, 4, 16), "paged_kv_cache": batch.cache, **how}
    with pytest.raises(attn.Error, match=words):
        wrapper.run(**given)


def test_other_refusals():
    wrapper = flashinfer.BatchPrefillWithPagedKVCacheWrapper
    with pytest.raises(attn.Error, match="jit_args: expected None"):
        wrapper(WORKSPACE, jit_args=[1])
    with pytest.raises(attn.Error, match="kv_layout"):
        wrapper(WORKSPACE, "HDN")
    with pytest.raises(attn.Error, match="paged_kv_indptr_buf: expected a tensor"):
        wrapper(WORKSPACE, use_cuda_graph=True, qo_indptr_buf=WORKSPACE)
    batch, rows = Batch([9], 8), to_int32([0, 2])
    plan = lambda **how: wrapper(WORKSPACE).plan(rows, *batch.lists, 4, 2, 16, 8, **how)  # noqa: E731
    with pytest.raises(attn.Error, match="custom_mask: expected 18 elements"):
        plan(custom_mask=torch.ones(17, dtype=torch.bool))
    with pytest.raises(attn.Error, match="packed_custom_mask: expected uint8"):
        plan(packed_custom_mask=torch.ones(3))
    with pytest.raises(attn.Error, match="prefix_len_ptr: expected None"):
        plan(prefix_len_ptr=rows)
    with pytest.raises(attn.Error, match="window_left: expected -1"):
        flashinfer.MultiLevelCascadeAttentionWrapper(1, WORKSPACE).plan(
            [rows], [batch.indptr], [batch.indices], [batch.last], 4, 2, 16, 8, window_left=4
        )


PREFILL = dict(q_data_type=torch.float32)
ROWS_OF_TWO = to_int32([0, 2])


def plan_prefill(*change, wrapper=None, **how):
    """Of a sequence of 2 rows and 9 keys in pages of 8; `change` takes the place of the first arguments."""
    batch = Batch([9], 8)
    given = [*change, *[ROWS_OF_TWO, *batch.lists][len(change) :]]
    wrapper = wrapper or flashinfer.BatchPrefillWithPagedKVCacheWrapper(WORKSPACE)
    wrapper.plan(*given, 4, 2, 16, 8, **PREFILL, **how)
    return wrapper, batch


def plan_ragged(rows=ROWS_OF_TWO, wrapper=None, **how):
    wrapper = wrapper or flashinfer.BatchPrefillWithRaggedKVCacheWrapper(WORKSPACE)
    wrapper.plan(rows, to_int32([0, 9]), 4, 2, 16, **PREFILL, **how)
    return wrapper


def make_fixed(is_paged):
    """A wrapper of a graph, whose first plan has 2 rows."""
    place = lambda: torch.zeros(2, dtype=torch.int32)  # noqa: E731
    if is_paged:
        wrapper = flashinfer.BatchPrefillWithPagedKVCacheWrapper(
            WORKSPACE, "NHD", True, place(), place(), place(), torch.zeros(1, dtype=torch.int32)
        )
        return plan_prefill(wrapper=wrapper)[0]
    wrapper = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(WORKSPACE, "NHD", True, place(), place())
    return plan_ragged(wrapper=wrapper)


def run_ragged(k):
    plan_ragged().run(torch.zeros(2, 4, 16), k, torch.zeros(9, 2, 16))


def run_pages(cache, **how):
    plan_prefill()[0].run(torch.zeros(2, 4, 16), cache, **how)


def append(k, cache):
    numbers = to_int32([0])
    flashinfer.append_paged_kv_cache(
        k, torch.zeros(1, 2, 16), numbers, numbers, cache, numbers, to_int32([0, 1]), to_int32([1])
    )


def plan_levels(levels, given):
    lists = [[x] * given for x in (ROWS_OF_TWO, *Batch([9], 8).lists)]
    flashinfer.MultiLevelCascadeAttentionWrapper(levels, WORKSPACE).plan(*lists, 4, 2, 16, 8)


ONE, POOL, MASK = torch.zeros(9, 2, 16), torch.zeros(3, 8, 2, 16), torch.ones(18, dtype=torch.bool)
SINGLE = flashinfer.single_prefill_with_kv_cache
REFUSED = {
    "workspace": (
        lambda: flashinfer.BatchPrefillWithPagedKVCacheWrapper(None),
        "float_workspace_buffer: expected a tensor, got NoneType",
    ),
    "odd columns": (
        lambda: flashinfer.BatchPrefillWithRaggedKVCacheWrapper(WORKSPACE).plan(
            ROWS_OF_TWO, ROWS_OF_TWO, 4, 2, 15, pos_encoding_mode="ROPE_LLAMA"
        ),
        "head_dim: expected an even number of columns with RoPE, got 15",
    ),
    "floats": (
        lambda: plan_prefill(torch.zeros(2)),
        "qo_indptr: expected int32 of one dimension, got torch.float32",
    ),
    "offsets": (
        lambda: plan_prefill(to_int32([0, 1, 2])),
        "paged_kv_indptr: expected 3 numbers, got 2",
    ),
    "lengths": (
        lambda: plan_prefill(ROWS_OF_TWO, to_int32([0, 2]), to_int32([0, 1]), to_int32([1, 1])),
        "paged_kv_last_page_len: expected 1 numbers, got 2",
    ),
    "buffer": (
        lambda: plan_prefill(to_int32([0, 1, 2]), wrapper=make_fixed(True)),
        "qo_indptr: expected 2 numbers at most, as its buffer has, got 3",
    ),
    "rows of a graph": (
        lambda: plan_prefill(to_int32([0, 3]), wrapper=make_fixed(True)),
        "qo_indptr: expected 2 rows of a sequence at most, as the graph has, got 3",
    ),
    "rows of a ragged graph": (
        lambda: plan_ragged(to_int32([0, 3]), make_fixed(False)),
        "qo_indptr: expected 2 rows of a sequence at most, as the graph has, got 3",
    ),
    "mask of a graph": (
        lambda: plan_prefill(wrapper=make_fixed(True), custom_mask=MASK),
        "custom_mask: expected None with use_cuda_graph",
    ),
    "mask of a ragged graph": (
        lambda: plan_ragged(wrapper=make_fixed(False), custom_mask=MASK),
        "custom_mask: expected None with use_cuda_graph",
    ),
    "mask": (
        lambda: plan_prefill(custom_mask=MASK.float()),
        r"custom_mask: expected a tensor of bool, got torch.float32 of shape \(18,\)",
    ),
    "keys": (
        lambda: run_ragged(ONE[:, :1]),
        r"k: expected rows of \(2, 16\), as plan\(\) said, got \(9, 1, 16\)",
    ),
    "cache": (
        lambda: run_pages((POOL[0], POOL[0])),
        "paged_kv_cache: expected tensors of 4 dimensions",
    ),
    "window": (
        lambda: run_pages((POOL, POOL), window_left=1.5),
        "window_left: expected a number of keys, or -1, got 1.5",
    ),
    "new keys": (
        lambda: append(ONE[:1, :, :8], (POOL, POOL)),
        r"append_key: expected torch.float32 of shape \(1, 2, 16\), got torch.float32 of \(1, 2, 8\)",
    ),
    "other pages": (
        lambda: append(ONE[:1], (POOL, POOL[:2])),
        "paged_kv_cache: expected as many pages and rows of values as of keys",
    ),
    "no levels": (lambda: plan_levels(0, 1), "num_levels: expected a level or more, got 0"),
    "levels": (lambda: plan_levels(2, 1), "qo_indptr_arr: expected 2 levels, got 1"),
    "row": (
        lambda: flashinfer.single_decode_with_kv_cache(ONE, ONE, ONE),
        r"q: expected a tensor \(H, D\), got torch.Size\(\[9, 2, 16\]\)",
    ),
    "rows": (lambda: SINGLE(ONE[0], ONE, ONE), "q: expected a tensor of 3 dimensions"),
    "output": (
        lambda: SINGLE(ONE, ONE, ONE, o_dtype=torch.float16),
        "o_dtype: expected that of q, torch.float32, got torch.float16",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_arguments_that_are_refused(name):
    call, words = REFUSED[name]
    with pytest.raises(attn.Error, match=words):
        call()
