#!/usr/bin/env python3
"""Where logits of a model with experts part: each layer's attention given the same inputs, and experts that change places.

    PYTHONPATH=python ATTN_LIBRARY=.../libattn.so bench/gpu/model_layers.py --out layers.json
    bench/gpu/model_layers.py --cpu --layers 4 --length 256

The GPT-OSS of models.py in bfloat16. A pass with eager attention keeps what each layer's attention is given, and what it returns in f32 for
the same; then every other implementation is given the same, layer by layer: `attention` is how far it is off f32. `logits` is how far logits
are off eager's where each goes on with its own, `moved` the part of choices of experts that are not eager's, and `held` the logits again,
with eager's experts. Differences are root mean squares, relative.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import json
import sys
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

import torch

import measure
import models


def differ(x: Any, wanted: Any) -> float:
    x, wanted = x.float(), wanted.float()
    return ((x - wanted).square().mean().sqrt() / wanted.square().mean().sqrt()).item()


def to_f32(x: Any) -> Any:
    if isinstance(x, (tuple, list)):
        return tuple(map(to_f32, x))
    return x.float() if isinstance(x, torch.Tensor) and x.is_floating_point() else x


@contextlib.contextmanager
def hooked(handles: List[Any]) -> Iterator[None]:
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


class Record:
    """Of a pass with eager attention."""

    def __init__(self, model: Any, call: Callable[[], Any]) -> None:
        self.layers = model.model.layers
        self.inputs: List[Any] = []
        self.exact: List[Any] = []
        self.routes: List[Any] = []
        handles = []
        for layer in self.layers:
            handles.append(layer.self_attn.register_forward_hook(self._keep_attention, with_kwargs=True))
            handles.append(layer.mlp.router.register_forward_hook(lambda module, given, routes: self.routes.append(routes)))
        with hooked(handles):
            self.logits = call()

    def _keep_attention(self, module: Any, given: Any, options: Any, output: Any) -> None:
        self.inputs.append(options["hidden_states"])
        # Of the module alone: hooks stay with the one that is copied.
        exact = copy.deepcopy(module).float()
        exact._forward_hooks.clear()
        exact._forward_hooks_with_kwargs.clear()
        self.exact.append(exact(**{name: to_f32(x) for name, x in options.items()})[0])

    def compare(self, call: Callable[[], Any]) -> Dict[str, Any]:
        """Of an implementation, a call of the same model."""
        routes: List[Any] = []
        with hooked([x.mlp.router.register_forward_hook(lambda module, given, found: routes.append(found)) for x in self.layers]):
            logits = call()
        moved = [self._count_moved(mine, theirs) for mine, theirs in zip(routes, self.routes)]
        errors: List[float] = []
        with hooked([x for i, layer in enumerate(self.layers) for x in self._feed(i, layer.self_attn, errors)]):
            call()
        with hooked([x.mlp.router.register_forward_hook(lambda m, g, f, i=i: self.routes[i]) for i, x in enumerate(self.layers)]):
            held = call()
        return {
            "attention": errors,
            "logits": differ(logits, self.logits),
            "moved": moved,
            "held": differ(held, self.logits),
        }

    def _feed(self, i: int, attention: Any, errors: List[float]) -> List[Any]:
        def replace(module: Any, given: Any, options: Any) -> Any:
            return given, {**options, "hidden_states": self.inputs[i]}

        def note(module: Any, given: Any, output: Any) -> None:
            errors.append(differ(output[0], self.exact[i]))

        return [attention.register_forward_pre_hook(replace, with_kwargs=True), attention.register_forward_hook(note)]

    @staticmethod
    def _count_moved(mine: Any, theirs: Any) -> float:
        """By the indices, which routers return last."""
        mine, theirs = (x[-1].sort(-1).values for x in (mine, theirs))
        return (mine != theirs).float().mean().item()


def main(arguments: Any = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--implementations", nargs="+", default=["attn", "flex_attention"])
    parser.add_argument("--length", type=int, default=2048, help="tokens (default: %(default)s)")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--cpu", action="store_true", help="on this CPU, with the widths of models.py's --tiny")
    parser.add_argument("--out", help="write the result here, as JSON")
    o = parser.parse_args(arguments)
    from attn.integrations import transformers as integration

    integration.register()
    config = models.make_config("gpt_oss", o.cpu, o.length)
    config.num_hidden_layers = o.layers
    config.layer_types = [("sliding_attention", "full_attention")[i % 2] for i in range(o.layers)]
    model = models.make_model("gpt_oss", config, "cpu" if o.cpu else "cuda", torch.bfloat16)
    ids = torch.randint(3, config.vocab_size, (1, o.length), device=model.device)
    record = Record(model, models.make_call(model, "eager", ids))
    result: Dict[str, Any] = {"machine": measure.describe_machine(), "tokens": o.length, "implementations": {}}
    for name in ["eager", *o.implementations]:
        found = result["implementations"][name] = record.compare(models.make_call(model, name, ids))
        print(f"{name:15} attention off f32 by {min(found['attention']):.2g} to {max(found['attention']):.2g}; logits off eager by "
              f"{found['logits']:.2g}, by {found['held']:.2g} with its experts; {100 * max(found['moved']):.1f} % of experts moved", flush=True)
    if o.out:
        Path(o.out).write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
