#!/usr/bin/env python3
"""Models of Transformers in the shape of a billion parameters, with random weights: the time of a prefill and the share of
attention in it, attn beside every attention that the model can run without it.

    PYTHONPATH=python ATTN_LIBRARY=.../libattn.so bench/gpu/models.py --out models.json
    bench/gpu/models.py --tiny      # a short one anywhere, of its logic

Implementations take turns in one process (measure.py). `difference` is how far logits are from those of eager attention, which runs once for
it: what one implementation is off by, the rounding of the others shows. `attention_ms` is the time between two events around each call of
the attention function, summed over layers, in passes of its own: repeating heads, masks inside of kernels and all copies that an
implementation makes of its results are in it; masks that are made once for all layers are in `ms` alone. Eager attention runs where nothing else does.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

import torch
import transformers
from transformers.modeling_utils import AttentionInterface

import measure

NATIVE = ("sdpa", "flash_attention_3", "flash_attention_2", "flex_attention")

# Layers, width, width of the feed-forward network, heads, heads of keys, columns of a head; words are few, so that what is
# measured is not the last product.
SHAPES = {
    "mistral": (16, 2048, 7168, 16, 4, 128),
    "gemma2": (18, 2048, 7168, 8, 4, 256),
    "gpt_oss": (12, 1536, 1536, 32, 8, 64),
}
TINY = (2, 64, 96, 4, 2, 16)


def make_config(kind: str, tiny: bool, length: int) -> Any:
    layers, width, inner, heads, key_heads, columns = TINY if tiny else SHAPES[kind]
    window = {"mistral": 4096, "gemma2": 4096, "gpt_oss": 128}[kind]
    common = dict(
        num_hidden_layers=layers, hidden_size=width, intermediate_size=inner, num_attention_heads=heads,
        num_key_value_heads=key_heads, head_dim=columns, vocab_size=97 if tiny else 32000, max_position_embeddings=length,
        sliding_window=length // 3 if tiny else window, pad_token_id=0, bos_token_id=1, eos_token_id=2,
    )
    if kind == "mistral":
        return transformers.MistralConfig(**common)
    if kind == "gemma2":
        return transformers.Gemma2Config(**common, query_pre_attn_scalar=columns)
    return transformers.GptOssConfig(**common, num_local_experts=2 if tiny else 8, num_experts_per_tok=1 if tiny else 2)


def make_model(kind: str, config: Any, device: str, dtype: Any) -> Any:
    model_class = {
        "mistral": transformers.MistralForCausalLM,
        "gemma2": transformers.Gemma2ForCausalLM,
        "gpt_oss": transformers.GptOssForCausalLM,
    }[kind]
    torch.manual_seed(0)
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.device(device):
            model = model_class(config).eval()
    finally:
        torch.set_default_dtype(before)
    # Sinks of new models are zeros, which would hide that they are dropped.
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "sinks" in name:
                parameter.normal_()
    return model


def make_call(model: Any, implementation: str, ids: Any) -> Callable[[], Any]:
    def call() -> Any:
        if model.config._attn_implementation != implementation:
            model.set_attn_implementation(implementation)
        with torch.no_grad():
            return model(input_ids=ids, use_cache=False, logits_to_keep=16).logits

    return call


def find_calls(model: Any, ids: Any, names: List[str]) -> Dict[str, Any]:
    """Those of `names` that the model runs; what fails is told with its reason. Eager where nothing but attn is left."""
    calls, left_out = {}, {}
    for name in [*names, "eager"]:
        if name == "eager" and len(calls) > 1:
            break
        call = make_call(model, name, ids)
        try:
            if name == "sdpa" and getattr(model.config, "attn_logit_softcapping", None):
                raise ValueError("it has no softcap, and some versions of Transformers drop it without a word")
            call()
            calls[name] = call
        except Exception as error:  # Each implementation raises what it likes.
            left_out[name] = (str(error).splitlines() or [type(error).__name__])[0][:200]
            print(f"  {name} left out: {left_out[name]}", file=sys.stderr)
    return {"calls": calls, "left_out": left_out}


@contextlib.contextmanager
def watch_attention(spans: List[Any]) -> Iterator[None]:
    """Adds a function that tells the milliseconds, for each call of an attention function."""
    whole = AttentionInterface.get_interface

    def get_interface(self: Any, *arguments: Any) -> Any:
        function = whole(self, *arguments)

        def timed(*inputs: Any, **options: Any) -> Any:
            start = tick()
            result = function(*inputs, **options)
            spans.append((start, tick()))
            return result

        return timed

    AttentionInterface.get_interface = get_interface
    try:
        yield
    finally:
        AttentionInterface.get_interface = whole


def tick() -> Any:
    if not torch.cuda.is_available():
        return time.perf_counter()
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def time_attention(call: Callable[[], Any], passes: int) -> float:
    """Milliseconds of attention in one pass, the median."""
    totals = []
    for _ in range(passes):
        spans: List[Any] = []
        with watch_attention(spans):
            call()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
            totals.append(sum(start.elapsed_time(end) for start, end in spans))
        else:
            totals.append(1000 * sum(end - start for start, end in spans))
        assert spans, "no attention function was called"
    return statistics.median(totals)


def measure_model(kind: str, o: argparse.Namespace) -> Dict[str, Any]:
    config = make_config(kind, o.tiny, o.length)
    model = make_model(kind, config, o.device, torch.float32 if o.tiny else torch.bfloat16)
    ids = torch.randint(3, config.vocab_size, (1, o.length), device=o.device)
    found = find_calls(model, ids, o.implementations)
    calls = found["calls"]
    logits = {name: call().float() for name, call in calls.items()}
    reference = make_call(model, "eager", ids)().float()
    times = measure.interleave(calls, o.rounds, o.seconds)
    results = {}
    for name, call in calls.items():
        attention = time_attention(call, o.passes)
        ms = statistics.median(times[name])
        results[name] = {"ms": ms, "rounds_ms": times[name], "attention_ms": attention, "share": attention / ms}
    peers = [name for name in calls if name != "attn"]
    best = min(peers, key=lambda name: results[name]["ms"])
    for name in calls:
        error = (logits[name] - reference).square().mean().sqrt() / reference.square().mean().sqrt()
        results[name]["difference"] = error.item()
    return {
        "parameters": sum(x.numel() for x in model.parameters()),
        "tokens": o.length,
        "window": config.sliding_window,
        "implementations": results,
        "left_out": found["left_out"],
        "best_native": best,
        "speedup": measure.ratio(times["attn"], times[best]),
        "attention_speedup": results[best]["attention_ms"] / results["attn"]["attention_ms"],
    }


def main(arguments: Any = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=tuple(SHAPES), default=list(SHAPES))
    parser.add_argument("--implementations", nargs="+", default=["attn", *NATIVE], help="eager is added where attn is alone")
    parser.add_argument("--length", type=int, default=8192, help="tokens (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each in a round (default: %(default)s)")
    parser.add_argument("--passes", type=int, default=5, help="that tell the share of attention (default: %(default)s)")
    parser.add_argument("--tiny", action="store_true", help="models of two layers in f32 on this CPU, of the logic alone")
    parser.add_argument("--out", help="write the result here, as JSON, after each model")
    o = parser.parse_args(arguments)
    o.device = "cpu" if o.tiny else "cuda"
    if o.implementations[0] != "attn":
        parser.error(f"expected attn as the first implementation, got {o.implementations[0]}")
    from attn.integrations import transformers as integration

    integration.register()
    result: Dict[str, Any] = {"machine": measure.describe_machine(), "transformers": transformers.__version__, "models": {}}
    for kind in o.models:
        found = result["models"][kind] = measure_model(kind, o)
        for name, x in found["implementations"].items():
            print(f"{kind:8} {name:17} {x['ms']:9.2f} ms, attention {x['attention_ms']:8.2f} ms, {100 * x['share']:.0f} %, "
                  f"off eager by {x['difference']:.2g}", flush=True)
        print(f"{kind:8} attn is {found['speedup']:.2f} times as fast as {found['best_native']}, its attention {found['attention_speedup']:.2f} times", flush=True)
        if o.out:
            Path(o.out).write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
