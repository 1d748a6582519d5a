"""Mistakes of kernels of sm_100a, and what the interpreter has to say of each (run_tensor_memory.py)."""

from dataclasses import dataclass
from typing import Dict, List, Optional, Tuple

from tensor_memory_texts import commit, load, multiply, store, wait

# Modes of swizzles by the bytes of a row, and types by their number in an instruction descriptor.
MODES = {16: 0, 128: 2, 64: 4, 32: 6}
TYPES = {"f16": 0, "bf16": 1, "e4m3": 0, "e5m2": 1}
# Bits 46 to 48 of a descriptor of shared memory.
CONSTANT = 1 << 46
K, MN = False, True
BF16 = "bf16", "bf16"


def make_word(m: int, n: int, left: str, right: str, transposed: Tuple[bool, bool] = (False, False), sum_: str = "f32") -> int:
    """An instruction descriptor."""
    return (int(sum_ == "f32") << 4 | TYPES[left] << 7 | TYPES[right] << 10 | transposed[0] << 15 | transposed[1] << 16 | n >> 3 << 17
            | m >> 4 << 24)


@dataclass
class Mistake:
    """A kernel that is right with other text in a place, and what the interpreter has to say of it."""

    case: str
    old: str
    new: str
    says: str
    # Of all places, or of this one.
    place: Optional[int] = None

    def apply(self, text: str) -> str:
        parts = text.split(self.old)
        if len(parts) < 2:
            raise ValueError(f"'{self.old}' is nowhere")
        if self.place is None:
            return self.new.join(parts)
        return self.old.join(parts[: self.place + 1]) + self.new + self.old.join(parts[self.place + 1 :])


BEFORE, AFTER = "tcgen05.fence::before_thread_sync;", "tcgen05.fence::after_thread_sync;"
COPY = """mov.b64 %rd9, map;
	cvta.param.u64 %rd9, %rd9;
	mbarrier.arrive.expect_tx.shared.b64 _, [%r1+24], 1024;
	add.s32 %r12, %r1, 1024;
	add.s32 %r13, %r1, 24;
	cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r12], [%rd9, {0, 0}], [%r13];
"""
# Turns in which a copy lands: a barrier that nobody waits for longer gives one away each time.
WASTE = """mov.u32 %r13, 0;
$turn:
	mbarrier.try_wait.parity.shared.b64 %p5, [%r1+8], 0;
	add.s32 %r13, %r13, 1;
	setp.lt.u32 %p5, %r13, 45;
	@%p5 bra $turn;
"""
MISTAKES: Dict[str, Mistake] = {
    # Allocation.
    "columns that are no power of two": Mistake("cells", "mov.u32 %r4, 256", "mov.u32 %r4, 96", "expected a power of two of columns"),
    "too many columns": Mistake("cells", "mov.u32 %r4, 256", "mov.u32 %r4, 1024", "expected a power of two of columns from 32 to 512"),
    "no dealloc": Mistake("cells", "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r5, %r4;", "", "tcgen05.dealloc of 256 columns"),
    "dealloc of other columns": Mistake("cells", "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r5, %r4;",
                                        "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r5, 128;", "an allocation's address and columns"),
    "alloc after the permit": Mistake("cells", "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;",
                                      "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n"
                                      "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1+4], %r4;", "no allocation after"),
    "more columns than before": Mistake("weights", "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;",
                                        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1+4], 128;", "no more columns than the 64"),
    "columns that nobody allocated": Mistake("cells", "add.s32 %r12, %r7, 0;", "add.s32 %r12, %r7, 256;", "expected allocated columns"),
    # Registers.
    "lanes of another warp": Mistake("cells", "add.s32 %r7, %r5, %r6;", "mov.u32 %r7, %r5;", "expected lane (32|64|96) of warp"),
    "no wait for a load": Mistake("cells", "tcgen05.wait::ld.sync.aligned;", "", "read before tcgen05.wait::ld"),
    "a store over a load": Mistake("weights", "tcgen05.wait::ld.sync.aligned;",
                                   "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r12], {%r8};\n", "tcgen05.ld of warp . reads: expected tcgen05.wait::ld"),
    "a load after a store": Mistake("weights", "tcgen05.wait::st.sync.aligned;",
                                    "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r13}, [%r7];\ntcgen05.wait::st.sync.aligned;",
                                    "tcgen05.st of warp . writes: expected tcgen05.wait::st"),
    # Between warps.
    "no wait for stores": Mistake("weights", "tcgen05.wait::st.sync.aligned;", "", "tcgen05.st of warp . writes: expected tcgen05.wait::st"),
    "no fence before": Mistake("weights", BEFORE, "", "expected tcgen05.fence::before_thread_sync", 1),
    "no fence after": Mistake("weights", AFTER, "", "expected tcgen05.fence::after_thread_sync", 1),
    "no wait for weights": Mistake("weights", "@!%p4 bra $again;", "", "expected (a barrier|a wait|tcgen05.wait::st)|nobody goes on"),
    "no wait for a product": Mistake("weights", "@!%p4 bra $done;", "", "expected (a barrier|a wait)|nobody goes on"),
    "no wait for a sum": Mistake("cells", "@!%p4 bra $asked;", "", "expected (a barrier|a wait)"),
    "no fence after a commit": Mistake("cells", AFTER, "", "expected tcgen05.fence::after_thread_sync", 1),
    "no commit": Mistake("cells", "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r1+8];", "", "nobody goes on"),
    "a commit to no barrier": Mistake("cells", "cluster.b64 [%r1+8];", "cluster.b64 [%r1+32];", "expected an address of a barrier, got 32"),
    "dealloc before the others have loaded": Mistake("weights", BEFORE + "\n	bar.sync 0;", "", "gives back columns|expected allocated columns", 1),
    "dealloc without fences": Mistake("weights", f"{BEFORE}\n	bar.sync 0;\n	{AFTER}\n	@%p1 bra $end;", "bar.sync 0;\n	@%p1 bra $end;", ""),
    # Products.
    "a product of 32 threads": Mistake("cells", "@%p2 bra $asked;", "@%p1 bra $asked;", "expected one thread, got 32"),
    "a sum of upper lanes": Mistake("cells", "add.s32 %r9, %r5, 0;", "add.s32 %r9, %r5, 1048576;", "expected lane 0"),
    "weights of other lanes": Mistake("weights", "add.s32 %r9, %r5, 32;", "add.s32 %r9, %r5, 32;\n\tadd.s32 %r5, %r5, 1048576;",
                                      "expected A in the lanes of the sum"),
    "sums of two shapes": Mistake("cells", f"{make_word(128, 32, *BF16)}, %p6", f"{make_word(128, 16, *BF16)}, %p6",
                                  "another place or shape"),
    "weights in the sum": Mistake("weights", "add.s32 %r9, %r5, 32;", "add.s32 %r9, %r5, 4;", "outside of the columns of the sum"),
    "lanes that are left alone": Mistake("cells", ", %p7;", ", {%r8, %r8, %r8, %r8}, %p7;", "tcgen05.mma", 0),
    "a scale of the sum": Mistake("cells", ", %p7;", ", %p7, 3;", "tcgen05.mma", 0),
    # Operands.
    "an operand that is overwritten": Mistake("cells", "$asked:", "st.shared.b32 [%r1+1024], %r2;\n$asked:", "writes what a product of warp 0 reads", 0),
    "an operand that is not fenced": Mistake("cells", "@%p2 bra $asked;", "@%p2 bra $asked;\nst.shared.b32 [%r1+1024], %r2;", "expected a fence between"),
    "an operand that a copy brings": Mistake("cells", "@%p2 bra $asked;", "@%p2 bra $asked;\n\t" + COPY, "a wait for the barrier of a copy"),
    "an operand that a copy has brought": Mistake("cells", "@%p2 bra $asked;", "@%p2 bra $asked;\n\t" + COPY + WASTE, "a wait for the barrier of a copy"),
    "a copy over an operand": Mistake("cells", "$asked:", COPY + "$asked:", "writes what a product of warp 0 reads", 0),
}
WORD = make_word(128, 16, "bf16", "bf16")
BEFORE_SYNC, SYNC, AFTER_SYNC = f"	{BEFORE}", "	bar.sync 0;", f"	{AFTER}"
MEET = [BEFORE_SYNC, SYNC, AFTER_SYNC]
LOADED, STORED = "	tcgen05.wait::ld.sync.aligned;", "	tcgen05.wait::st.sync.aligned;"
UNLOADED, UNSTORED, UNFINISHED = ("expected tcgen05.wait::ld after it", "expected tcgen05.wait::st after it",
                                  "expected a wait for the barrier of its commit")
A, SUM, OTHER = 0, 32, 64
# Lines that two warps go through, and what is wrong. A warp has the columns from 0 on as A, and sums from 32 and 64 on.
SEQUENCES: Dict[str, Tuple[List[str], str]] = {
    "st, ld": ([store(A), load(A)], f"reads columns 0 to 3, which tcgen05.st of warp . writes: {UNSTORED}"),
    "ld, st": ([load(A), store(A)], f"writes columns 0 to 3, which tcgen05.ld of warp . reads: {UNLOADED}"),
    "st, st": ([store(A), store(A)], f"writes columns 0 to 3, which tcgen05.st of warp . writes: {UNSTORED}"),
    "mma, ld": ([multiply(A, SUM, WORD), SYNC, load(SUM)], f"reads columns 32 to 35, which tcgen05.mma of warp 0 writes: {UNFINISHED}"),
    "mma, st of its sum": ([multiply(A, SUM, WORD), SYNC, store(SUM)], f"writes columns 32 to 35, which tcgen05.mma of warp 0 writes: {UNFINISHED}"),
    "mma, st of its A": ([multiply(A, SUM, WORD), SYNC, store(A)], f"writes columns 0 to 3, which tcgen05.mma of warp 0 reads: {UNFINISHED}"),
    "st, mma of it": ([store(A), multiply(A, SUM, WORD)], f"multiplies columns 0 to 7, which tcgen05.st of warp 0 writes: {UNSTORED}"),
    "mma, mma of its sum": ([multiply(A, SUM, WORD), multiply(SUM, OTHER, WORD)],
                            f"multiplies columns 32 to 39, which tcgen05.mma of warp 0 writes: {UNFINISHED}"),
    "ld, mma over it": ([load(SUM), multiply(A, SUM, WORD)], f"puts a sum in columns 32 to 47, which tcgen05.ld of warp 0 reads: {UNLOADED}"),
    "st, mma over it": ([store(SUM), multiply(A, SUM, WORD)], f"puts a sum in columns 32 to 47, which tcgen05.st of warp 0 writes: {UNSTORED}"),
    "mma, mma over its A by another warp": ([multiply(A, SUM, WORD), SYNC, multiply(SUM + 16, A, WORD, "%p8")],
                                            "puts a sum in columns 0 to 15, which tcgen05.mma of warp 0 reads: expected tcgen05.fence::before"),
    "mma, mma of another warp": ([multiply(A, SUM, WORD), BEFORE_SYNC, SYNC, multiply(A, SUM, WORD, "%p8")],
                                 "puts a sum in columns 32 to 47, which tcgen05.mma of warp 0 writes: expected tcgen05.fence::after"),
    "st of another warp, mma": ([store(A, "@%p1 "), STORED, multiply(A, SUM, WORD)],
                                "(multiplies|writes) columns .*: expected (a barrier between them|a wait for the barrier of its commit)"),
    "mma of 64 rows over a sum of 128": ([multiply(A, SUM, WORD), multiply(A, SUM, make_word(64, 16, *BF16))], "another place or shape"),
    "ld, dealloc": ([load(A, "@%p1 ")], f"gives back columns 0 to 511, which tcgen05.ld of warp 1 reads: {UNLOADED}"),
    "mma, dealloc": ([multiply(A, SUM, WORD), commit()], f"gives back columns 0 to 511, which tcgen05.mma of warp 0 reads: {UNFINISHED}"),
    "a register that is loaded again": ([load(A), LOADED, load(A), "	add.s32 %r13, %r100, 1;"], "%r100 is read before tcgen05.wait::ld"),
    "a pair of registers that are loaded": ([load(A), "	mov.b64 %rd9, {%r101, %r102};", "	add.s64 %rd9, %rd9, 1;"], "%rd9 is read before"),
    "a part of a warp": (["	@!%p2 tcgen05.wait::ld.sync.aligned;"], "expected all lanes of a warp, got 1"),
    # And what is right: an error would be one of the interpreter.
    "products of two warps": ([store(A), STORED, *MEET, multiply(A, SUM, WORD), *MEET, multiply(A, SUM, WORD, "%p8"), commit("%p8"), wait(),
                               commit("%p2", 24), wait(24), AFTER_SYNC, store(A), STORED, load(SUM), LOADED], ""),
    "a pair before the wait": ([load(A), "	mov.b64 %rd9, {%r101, %r102};", LOADED, "	add.s64 %rd9, %rd9, 1;"], ""),
    "a commit is a fence": ([store(A, "@!%p1 "), STORED, multiply(A, SUM, WORD), commit(), wait(), AFTER_SYNC, multiply(A, OTHER, WORD, "%p8"),
                             commit("%p8", 24), wait(24), AFTER_SYNC], ""),
    "a copy that was waited for": (["	@%p2 bra $asked;\n	" + COPY + "$asked:", wait(24), multiply(A, SUM, WORD), commit(), wait(), AFTER_SYNC], ""),
    "a copy's arrival": ([store(A, "@!%p1 "), STORED, BEFORE_SYNC, "	add.s32 %r12, %r1, 64;", "	@!%p2 cp.async.ca.shared.global [%r12], [%rd2], 4;",
                          "	@!%p2 cp.async.mbarrier.arrive.noinc.shared.b64 [%r1+8];", wait(), AFTER_SYNC,
                          multiply(A, SUM, WORD, "%p8"), commit("%p8", 24), wait(24), AFTER_SYNC], ""),
}
# Of 64 rows or columns of bf16 from the first byte of a pattern of 1024 on; the two offsets are 16 and 1024 bytes.
RIGHT = 2 << 61 | CONSTANT | 1024 >> 4 << 32 | 16 >> 4 << 16 | 1024 >> 4
# Descriptors of shared memory: bits that differ from those, whether columns lie together, and what is wrong.
OPERANDS: Dict[str, Tuple[int, bool, str]] = {
    "no constant": (CONSTANT, K, r"bits 46 to 48 \(constant\)"),
    "another constant": (1 << 53, K, r"bits 53 to 60 \(constant\)"),
    "a reserved bit": (1 << 14, K, r"bits 14 to 15 \(reserved\)"),
    "another reserved bit": (1 << 31, K, r"bits 30 to 31 \(reserved\)"),
    "a base offset": (1 << 49, K, "base offset"),
    "an offset that is an address": (1 << 52, K, "a leading offset that is an address"),
    "a mode of nothing": (1 << 61, K, "expected a mode"),
    "cells of 32 bytes": (3 << 61, K, "by cells of 32 bytes"),
    "a start in another row": (128 >> 4, K, "the first row of a pattern of 1024 bytes"),
    "a start near a row's end": (112 >> 4, K, "expected 32 bytes in a row of 128"),
    "a start within columns": (32 >> 4, MN, "expected 128 bytes in a row of 128"),
    "a leading offset of rows": (128 >> 4 << 16, K, "expected no leading offset"),
    "a stride of half a pattern": (512 >> 4 << 32, K, "expected a stride offset of patterns of 1024"),
    "no stride": (1024 >> 4 << 32, K, "expected a stride offset of patterns of 1024"),
    "no stride of columns": (1024 >> 4 << 32, MN, "expected a stride offset of patterns of 1024"),
    "cells in one place": (2 << 61 | 1008 >> 4 << 32, K, "expected offsets that keep rows apart"),
}
# And of instructions: bits that differ from a product of 128 x 64 of bf16, its kind, and what is wrong.
INSTRUCTION = make_word(128, 64, "bf16", "bf16")
INSTRUCTIONS: Dict[str, Tuple[int, str, str]] = {
    "sparse": (1 << 2, "f16", "sparsity"),
    "saturated": (1 << 3, "f16", "saturation"),
    "a reserved bit": (1 << 6, "f16", r"bits 6 to 6 \(reserved\)"),
    "another reserved bit": (1 << 23, "f16", r"bits 23 to 23 \(reserved\)"),
    "the last reserved bit": (1 << 29, "f16", r"bits 29 to 29 \(reserved\)"),
    "a shift": (1 << 30, "f16", "shift"),
    "a sum of integers": (3 << 4, "f16", "as the type of the sum, got 2"),
    "a sum of f16": (1 << 4, "f16", "expected a sum of f32 of operands of bf16"),
    "tf32": (3 << 7, "f16", r"expected one of \[0, 1\] as the type"),
    "6 bits": (2 << 7, "f8f6f4", "a product of e2m3"),
    "bf16 and f16": (1 << 7, "f16", "a product of f16 and bf16"),
    "256 rows": (24 << 24, "f16", "expected 64 or 128 rows, got 256"),
    "no columns": (8 << 17, "f16", "from 16 to 256 as columns of 128 rows, got 0"),
    "264 columns": (41 << 17, "f16", "from 16 to 256 as columns of 128 rows, got 264"),
    "eights of columns": (1 << 17, "f16", "expected a multiple of 16"),
    "eights of columns of 8 bits": (12 << 24 | 1 << 16 | 1 << 17, "f8f6f4", "expected a multiple of 16"),
}
