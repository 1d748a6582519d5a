"""Programs as users write them, for mypy alone: nothing here runs. A line that has to be refused ends in an ignore, which
mypy refuses where the line would pass (--warn-unused-ignores)."""

from pathlib import Path
from typing import Optional, Tuple

import numpy as np
from numpy.typing import NDArray
from typing_extensions import assert_type

import attn
from attn.typing import Array, Mask, Score

Floats = NDArray[np.float32]


def use_attention(q: Floats, k: Floats, v: Floats, flag: bool) -> None:
    assert_type(attn.attention(q, k, v), Floats)
    assert_type(attn.attention(q, k, v, return_lse=True), Tuple[Floats, Floats])
    attn.attention(q, k, v, causal="top_left", window=(3, None), layout="bshd", scale=0.5, sink=q[0, 0, 0])
    attn.attention(q, k, v, dropout_p=0.1, dropout_seed=3, options={"block_m": 64})
    attn.attention(q, k, v, options=attn.Options(block_m=64, cache=False, cache_dir=Path("x"), way="long"))
    score: Score = lambda s, b, h, i, j: s - (i - j)
    mask: Mask = lambda b, h, i, j: j <= i
    attn.attention(q, k, v, score=score, mask=mask)
    assert_type(attn.gradient(q, k, v, q, causal=True), Tuple[Floats, ...])
    # Refused:
    attn.attention(q, k, v, causal="left")  # type: ignore[call-overload]
    attn.attention(q, k, v, layout="sbhd")  # type: ignore[call-overload]
    attn.attention(q, k, v, window=3)  # type: ignore[call-overload]
    attn.attention(q, k, [1.0])  # type: ignore[call-overload]
    attn.attention(q, k, v, mask=lambda i, j: i > j)  # type: ignore[arg-type,misc]
    attn.Options(blok_m=64)  # type: ignore[call-arg]
    attn.Options(block_m="64")  # type: ignore[arg-type]
    attn.Options(way="longest")  # type: ignore[arg-type]


def use_kernels(q: Floats) -> None:
    kernel = attn.compile("float32", 64, causal=True)
    assert_type(kernel(q, q, q), Floats)
    assert_type(kernel.way((1, 2, 3, 64), q, q), str)
    both = attn.compile("float32", 64, return_lse=True)
    assert_type(both(q, q, q), Tuple[Floats, Floats])
    kernel.prepare()
    attn.compile("float32", "64")  # type: ignore[call-overload]


def use_the_rest(q: Floats, rows: NDArray[np.int32]) -> None:
    assert_type(attn.explain(q, q, q, until="ptx"), attn.Explanation)
    assert_type(attn.explain("bfloat16", 64, device="cuda"), attn.Explanation)
    attn.explain("bfloat16", 64, until="room")  # type: ignore[arg-type]
    assert_type(attn.tune(q, q, q).milliseconds, "dict[str, float]")
    assert_type(attn.visualize_mask(128, causal=True).svg, str)
    assert_type(attn.warm_up([{"dtype": "float32", "head_dim": 64}]), int)
    assert_type(attn.collect_env(), attn.Explanation)
    with attn.dump("calls") as folder:
        assert_type(folder, Path)
    output = attn.serving.paged_attention(q, q, q, page_table=rows, seqused_k=rows)
    assert_type(output, Floats)
    pair = attn.serving.varlen_attention(q, q, q, rows, rows, max_seqlen_q=3, max_seqlen_k=3, return_lse=True)
    assert_type(pair, Tuple[Floats, Floats])
    output = attn.serving.cascade_attention(q, q, q, page_table=rows, seqused_k=rows, shared_pages=1)
    assert_type(output, Floats)
    assert_type(attn.merge([q, q], [q, q]), Tuple[Floats, Floats])
    assert_type(attn.merge(q, q, layout="bshd"), Tuple[Floats, Floats])
    attn.merge(q, q, layout="sbhd")  # type: ignore[arg-type]


def use_caches(q: Floats, rows: NDArray[np.int32]) -> None:
    rotary = attn.serving.Rotary(q, q)
    slots, positions = attn.serving.find_slots(rows, rows, 3, page_size=16, page_table=rows)
    assert_type(slots, NDArray[np.int32])
    assert_type(attn.serving.rotate(q, positions, rotary), Floats)
    assert_type(attn.serving.append(q, q, q, q, slots, rotary=rotary, positions=positions, q=q), Floats)
    attn.serving.append(q, q, q, q, slots, kv_layout="HND")
    attn.serving.append(q, q, q, q, slots, kv_layout="DNH")  # type: ignore[call-overload]


def take(x: Array) -> Tuple[int, ...]:
    return x.shape


def use_protocols(q: Floats, name: Optional[str]) -> None:
    take(q)
    take(name)  # type: ignore[arg-type]
