"""Training in two processes: DistributedDataParallel and FSDP2, whose losses on attn are those of
eager attention, step by step."""

import os

import processes
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

PROGRAM = '''
import sys
import torch, torch.distributed as dist
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel
from attn.integrations import transformers as integration
from families import make, make_batch

kind, way = sys.argv[1:]
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()
integration.register()


def wrap(model):
    if way.startswith("ddp"):
        # Small buckets: a compiled graph is cut where one ends.
        dist._DEFAULT_FIRST_BUCKET_BYTES = 10_000
        return DistributedDataParallel(model, bucket_cap_mb=0.02)
    how = {"mesh": dist.init_device_mesh("cpu", (2,))}
    if way == "fsdp bf16":
        how["mp_policy"] = MixedPrecisionPolicy(torch.bfloat16, torch.float32)
    if way == "fsdp checkpointed":
        model.gradient_checkpointing_enable({"use_reentrant": False})
    for name, layer in model.named_modules():
        if name.split(".")[-2:-1] in (["layers"], ["block"]):
            fully_shard(layer, **how)
    fully_shard(model, **how)
    return model


def train(implementation):
    """The losses of all processes, and the parameters after three steps."""
    model = make(kind).train()
    model.set_attn_implementation(implementation)
    wrapped = wrap(model)
    call = torch.compile(wrapped, backend="aot_eager") if way.endswith("compiled") else wrapped
    optimizer = torch.optim.AdamW(wrapped.parameters(), 1e-3)
    losses = []
    for step in range(3):
        torch.manual_seed(10 * step + rank)
        inputs, read = make_batch(kind, ("left", "right", None)[step])
        (logits,) = read(call(**inputs))
        targets = torch.randint(0, 97, logits.shape[:1])
        loss = torch.nn.functional.cross_entropy(logits.float(), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        both = loss.detach().clone()
        dist.all_reduce(both)
        losses.append(both / 2)
    whole = [x.full_tensor() if hasattr(x, "full_tensor") else x for x in model.parameters()]
    return torch.stack(losses), torch.cat([x.detach().flatten() for x in whole])


wanted, parameters = train("eager")
torch._dynamo.reset()
got, found = train("attn")
bound = 2e-2 if way == "fsdp bf16" else 1e-5
assert (got - wanted).abs().max() < bound, (got, wanted)
assert wanted[0] != wanted[1]
# Adam divides small gradients by themselves.
off = (found - parameters).norm() / parameters.norm()
assert off < (5e-3 if way == "fsdp bf16" else 2e-4), off
everyone = [torch.empty_like(found) for _ in range(2)]
dist.all_gather(everyone, found)
assert torch.equal(*everyone)
print(kind, way, "losses", got.tolist(), "apart", float((got - wanted).abs().max()), float(off))
print("agreed")
dist.destroy_process_group()
'''


# Each change runs two of them, `make test-training` all.
WAYS = "ddp", "ddp compiled", "fsdp", "fsdp compiled", "fsdp bf16", "fsdp checkpointed"
CASES = [("t5", "ddp"), ("gpt_oss", "fsdp compiled")]
if os.environ.get("ATTN_TRAINING") == "all":
    CASES = [(kind, way) for kind in ("gpt_oss", "t5") for way in WAYS]


@pytest.mark.long
@pytest.mark.parametrize("kind, way", CASES)
def test_losses(kind, way, tmp_path):
    if not torch.distributed.is_available():
        pytest.skip("PyTorch without torch.distributed")
    processes.run(tmp_path, PROGRAM, kind, way)
