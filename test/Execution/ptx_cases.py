"""The cases of run_ptx.py: which attention, with what options, on which extents."""

from typing import List, Tuple

STAYS = "stay=true recompute=true"
# In front of what attn-to-online takes: the function returns gradients too.
GRADIENTS = "gradients "
# Query, keys and values are rows of sequences, of which the first has M rows and N keys. Before GRADIENTS: the function is that of
# the gradients, and takes output and lse.
RAGGED = "ragged "
# Before GRADIENTS: elements are f32.
WIDE = "f32 "
# Elements are f8E4M3FN with scales of key heads, and the output bf16.
NARROW = "f8 "
# Results of bf16 are f32: the output, or after RAGGED and before GRADIENTS those of gradients, which read such an output.
RESULTS = "f32-results "
# (mask, D, what attn-to-online takes, (B, H, Hkv, M, N)).
CASES: List[Tuple[str, int, str, Tuple[int, ...]]] = [
    ("full", 64, "way=short", (1, 2, 1, 129, 130)),
    ("full", 64, "way=long", (2, 1, 1, 70, 700)),
    ("full", 128, "way=short", (1, 3, 3, 200, 129)),
    ("full", 128, "way=long", (1, 1, 1, 193, 161)),
    ("full", 128, "way=few", (1, 2, 1, 100, 300)),
    ("full", 128, "way=narrow", (2, 2, 2, 200, 77)),
    ("full", 256, "way=narrow", (1, 1, 1, 130, 154)),
    ("full", 192, "", (1, 2, 1, 140, 210)),
    ("full", 128, f"{STAYS} slack=0", (1, 2, 2, 200, 100)),
    ("full", 256, "", (1, 1, 1, 129, 161)),
    ("full", 256, f"{STAYS} block-n=80", (1, 3, 1, 130, 81)),
    ("causal", 64, "way=short", (1, 2, 2, 150, 200)),
    ("causal", 128, "", (1, 2, 1, 257, 300)),
    ("causal", 128, STAYS, (1, 2, 1, 200, 150)),
    ("causal", 192, "", (1, 1, 1, 129, 129)),
    ("causal", 256, "", (1, 2, 2, 130, 65)),
    ("causal", 256, "apart=true", (1, 3, 3, 300, 300)),
    ("causal", 64, "apart=true way=long", (1, 2, 1, 400, 390)),
    ("causal", 192, f"apart=true {STAYS}", (1, 2, 1, 129, 350)),
    ("full", 64, "stay=true keep=32", (1, 3, 1, 300, 200)),
    ("softcap", 128, "", (1, 1, 1, 130, 200)),
    ("alibi", 128, "", (1, 2, 1, 129, 260)),
    ("alibi", 128, STAYS, (1, 2, 1, 200, 150)),
    ("relbias", 64, "", (1, 2, 2, 100, 150)),
    ("causal", 64, "splits=3", (1, 2, 1, 70, 200)),
    ("causal", 64, "pack=4", (1, 4, 1, 3, 700)),
    ("full", 128, "pack=8", (1, 8, 2, 1, 700)),
    ("full", 128, "pack=8", (2, 6, 1, 2, 200)),
    ("full", 64, "pack=2", (1, 2, 2, 5, 300)),
    ("sink", 64, "pack=4", (1, 6, 2, 2, 700)),
    ("sink", 64, "splits=3", (1, 2, 1, 70, 200)),
    ("length", 64, "pack=4", (2, 4, 1, 3, 700)),
    ("length", 128, "splits=3", (2, 1, 1, 70, 300)),
    ("causal", 64, "fixed-split=64", (1, 2, 1, 70, 200)),
    ("window", 128, "fixed-split=128 pack=4", (1, 4, 1, 3, 300)),
    ("length", 128, "page=16 pack=8 fixed-split=128", (2, 8, 1, 1, 320)),
    ("full", 64, f"{RAGGED}fixed-split=64", (3, 2, 2, 65, 200)),
    ("full", 64, f"{GRADIENTS}fused=false", (1, 2, 1, 70, 100)),
    ("causal", 64, f"{GRADIENTS}fused=true", (1, 2, 1, 100, 130)),
    ("causal", 128, f"{GRADIENTS}fused=true", (1, 1, 1, 70, 100)),
    ("causal", 128, f"{GRADIENTS}fused=false", (1, 1, 1, 100, 70)),
    ("length", 128, "page=64 pack=8", (2, 8, 1, 1, 320)),
    ("length", 64, "page=16", (2, 2, 1, 70, 160)),
    ("length", 128, "page=32 block-n=80 splits=2", (2, 1, 1, 65, 320)),
    ("document", 64, "", (2, 1, 1, 130, 130)),
    ("sorted", 64, "", (2, 1, 1, 130, 130)),
    ("limit", 64, "", (2, 1, 1, 70, 150)),
    ("constant", 64, "", (1, 1, 1, 70, 70)),
    ("product", 64, "", (1, 1, 1, 70, 70)),
    ("sum", 128, "", (2, 1, 1, 70, 150)),
    ("two", 64, "", (2, 1, 1, 70, 150)),
    ("two", 64, "splits=2", (2, 1, 1, 70, 150)),
    ("causal", 64, WIDE, (1, 2, 1, 70, 150)),
    ("causal", 64, WIDE + GRADIENTS, (1, 2, 1, 70, 100)),
    ("causal", 64, RESULTS, (1, 2, 1, 70, 150)),
    ("padding", 64, GRADIENTS, (1, 2, 1, 70, 150)),
    ("full", 64, NARROW, (1, 2, 1, 129, 130)),
    ("causal", 128, NARROW, (2, 2, 2, 200, 300)),
    ("padding", 128, f"{GRADIENTS}splits=2", (1, 1, 1, 66, 200)),
]
# Of these, each run without --case has some.
SAMPLED: List[Tuple[str, int, str, Tuple[int, ...]]] = [
    ("length", 128, "page=1 pack=8", (2, 8, 1, 1, 321)),
    ("length", 64, "page=2 order=HND pack=4", (2, 4, 1, 3, 322)),
    ("length", 64, "page=3", (2, 2, 1, 70, 162)),
    ("window", 128, "page=4 order=content block-n=80 splits=2", (2, 1, 1, 65, 324)),
    ("window", 64, "page=8 pack=4", (2, 4, 1, 2, 320)),
    ("length", 128, "page=8 order=content splits=3", (2, 2, 2, 5, 320)),
    ("sink", 64, "page=17 order=HND pack=4", (2, 6, 2, 2, 323)),
    ("length", 256, "page=17", (2, 2, 1, 3, 170)),
    ("full", 192, "page=1 order=content", (1, 2, 1, 100, 130)),
    ("causal", 64, "page=1", (1, 2, 2, 150, 200)),
    ("full", 64, RAGGED, (3, 2, 1, 70, 150)),
    ("constant", 128, f"{RAGGED}way=long", (3, 1, 1, 140, 140)),
    ("full", 128, f"{RAGGED}splits=2", (3, 2, 2, 65, 200)),
    ("constant", 128, f"{RAGGED}pack=8", (3, 8, 2, 6, 200)),
    ("full", 64, RAGGED + GRADIENTS, (3, 2, 1, 70, 150)),
    ("causal", 64, RAGGED + GRADIENTS, (3, 2, 2, 140, 130)),
    ("causal", 128, RAGGED + GRADIENTS, (3, 2, 1, 100, 100)),
    ("full", 128, RAGGED + GRADIENTS, (3, 2, 2, 70, 150)),
    ("causal", 128, f"{RAGGED}{GRADIENTS}fused=false", (3, 2, 1, 100, 100)),
    ("full", 256, RAGGED + GRADIENTS, (3, 1, 1, 40, 70)),
    ("softcap", 128, WIDE, (1, 2, 1, 130, 70)),
    ("full", 256, WIDE, (1, 1, 1, 70, 40)),
    ("causal", 64, f"{WIDE}splits=2", (1, 2, 1, 70, 200)),
    ("full", 128, f"{WIDE}pack=2", (1, 2, 1, 1, 100)),
    ("full", 128, WIDE + GRADIENTS, (1, 2, 2, 40, 70)),
    ("padding", 64, WIDE + GRADIENTS, (1, 1, 1, 70, 100)),
    ("causal", 128, f"{RESULTS}splits=2", (1, 2, 1, 70, 200)),
    ("causal", 64, RAGGED + RESULTS + GRADIENTS, (3, 2, 2, 140, 130)),
    ("full", 128, f"{RAGGED}{RESULTS}{GRADIENTS}fused=false", (3, 2, 1, 70, 100)),
    ("full", 256, NARROW, (1, 1, 1, 130, 200)),
    ("softcap", 128, NARROW, (1, 2, 1, 70, 150)),
    ("alibi", 64, NARROW, (1, 2, 1, 129, 260)),
    ("length", 64, f"{NARROW}splits=2", (2, 2, 1, 70, 300)),
]
NUM_SAMPLED = 8
