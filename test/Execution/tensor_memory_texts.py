"""Small kernels of sm_100a by hand, which use tensor memory as attention does (run_tensor_memory.py runs them).

Each has `out`, 128 rows of 32-bit words, `given`, rows of words that threads read, and `map`, of boxes of 8 x 64 elements.
"""

from typing import Sequence

# Bytes of shared memory in front of operands: the address of tensor memory, and barriers at 8, 16 and 24.
FRONT = 1024
HEAD = """.version 8.8
.target sm_100a
.address_size 64
.extern .shared .align 1024 .b8 attn_shared[];
"""
BEGIN = """.visible .entry {name}(
	.param .u64 out,
	.param .u64 given,
	.param .align 64 .b8 map[128]
)
.reqntid {threads}, 1, 1
{{
	.reg .pred %p<9>;
	.reg .b32 %r<300>;
	.reg .b64 %rd<30>;
	ld.param.u64 %rd1, [out];
	ld.param.u64 %rd2, [given];
	mov.u32 %r1, attn_shared;
	mov.u32 %r2, %tid.x;
	shr.u32 %r3, %r2, 5;
	setp.ne.u32 %p1, %r3, 0;
	setp.ne.u32 %p2, %r2, {multiplier};
	@%p2 bra $made;
	mbarrier.init.shared.b64 [%r1+8], 1;
	mbarrier.init.shared.b64 [%r1+16], 128;
	mbarrier.init.shared.b64 [%r1+24], 1;
$made:
	@%p1 bra $allocated;
	mov.u32 %r4, {allocated};
	tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], %r4;
	tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
$allocated:
	tcgen05.fence::before_thread_sync;
	bar.sync 0;
	tcgen05.fence::after_thread_sync;
	ld.shared.b32 %r5, [%r1];
	shl.b32 %r6, %r3, 21;
	add.s32 %r7, %r5, %r6;
"""
END = """	tcgen05.fence::before_thread_sync;
	bar.sync 0;
	tcgen05.fence::after_thread_sync;
	@%p1 bra $end;
	tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r5, %r4;
$end:
	ret;
}}
"""
# Thread 0 multiplies what lies in shared memory, and each thread stores a row.
PRODUCT = BEGIN + """	@%p2 bra $asked;
{products}
	tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r1+8];
$asked:
	mbarrier.try_wait.parity.shared.b64 %p4, [%r1+8], 0;
	@!%p4 bra $asked;
	tcgen05.fence::after_thread_sync;
{stores}""" + END
# A thread of warp 4 multiplies weights that threads of four others put into tensor memory, twice, and adds to what is there.
WEIGHTS = BEGIN + """	setp.ne.u32 %p3, %r3, 4;
	mov.u32 %r8, 0;
	@%p3 bra $rows;
	@%p2 bra $met;
$again:
	mbarrier.try_wait.parity.shared.b64 %p4, [%r1+16], %r8;
	@!%p4 bra $again;
	tcgen05.fence::after_thread_sync;
{products}
	tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r1+8];
	add.s32 %r8, %r8, 1;
	setp.lt.u32 %p5, %r8, 2;
	@%p5 bra $again;
	bra $met;
$rows:
	mul.wide.u32 %rd3, %r2, 32;
	add.s64 %rd3, %rd2, %rd3;
{zeros}
$next:
	ld.global.v4.b32 {{%r40, %r41, %r42, %r43}}, [%rd3];
	ld.global.v4.b32 {{%r44, %r45, %r46, %r47}}, [%rd3+16];
	add.s64 %rd3, %rd3, 4096;
	tcgen05.st.sync.aligned.32x32b.x8.b32 [%r7], {{%r40, %r41, %r42, %r43, %r44, %r45, %r46, %r47}};
	tcgen05.wait::st.sync.aligned;
	tcgen05.fence::before_thread_sync;
	mbarrier.arrive.shared.b64 _, [%r1+16];
$done:
	mbarrier.try_wait.parity.shared.b64 %p4, [%r1+8], %r8;
	@!%p4 bra $done;
	tcgen05.fence::after_thread_sync;
{stores}
	add.s32 %r8, %r8, 1;
	setp.lt.u32 %p5, %r8, 2;
	@%p5 bra $next;
$met:
	bar.warp.sync -1;
""" + END
# Two warps, which go through the same lines; %p1 is false in the first, %p2 and %p8 are false in the first thread of each.
SEQUENCE = BEGIN + """	setp.ne.u32 %p8, %r2, 32;
	setp.eq.u32 %p6, %r2, %r2;
{operand}
{lines}
""" + END
# One product, of operands that are given: descriptors in %rd6 (or an address in %r10) and %rd7.
MULTIPLY = "	tcgen05.mma.cta_group::1.kind::{kind}.collector::a::discard [%r9], {a}, %rd7, {word}, {adds};"


def make_descriptor(register: str, offset: int, bits: int) -> str:
    """A descriptor of shared memory from a byte on, whose other bits are known."""
    return f"""	add.s32 %r11, %r1, {offset};
	shr.u32 %r11, %r11, 4;
	cvt.u64.u32 %rd8, %r11;
	or.b64 {register}, %rd8, {bits};"""


def name_registers(count: int, first: int = 100) -> str:
    return "{" + ", ".join(f"%r{first + i}" for i in range(count)) + "}"


def split_columns(count: int) -> Sequence[int]:
    """Powers of two that registers are loaded by, the largest first."""
    return [1 << bit for bit in (7,) * (count >> 7) + tuple(bit for bit in range(6, -1, -1) if count >> bit & 1)]


def store_rows(columns: int, at: int = 0, pack: str = "") -> str:
    """Each thread stores its lane's words, and goes on behind them. {pack} is of tcgen05.ld."""
    lines, first = [f"	mul.wide.u32 %rd4, %r2, {4 * columns};", "	add.s64 %rd4, %rd1, %rd4;"], at
    for count in split_columns(columns):
        lines += [f"	add.s32 %r12, %r7, {first};",
                  f"	tcgen05.ld.sync.aligned.32x32b.x{count}{pack}.b32 {name_registers(count)}, [%r12];",
                  "	tcgen05.wait::ld.sync.aligned;"]
        lines += [f"	st.global.v4.b32 [%rd4+{4 * i}], {name_registers(4, 100 + i)};" for i in range(0, count, 4)]
        lines.append(f"	add.s64 %rd4, %rd4, {4 * count};")
        first += count * (2 if pack else 1)
    return "\n".join(lines + [f"	add.s64 %rd1, %rd1, {512 * columns};"])


def fill(columns: int, at: int) -> str:
    """Each thread writes the bits of 1.0 to its lane's words."""
    lines = [f"	add.s32 %r12, %r7, {at};", *(f"	mov.b32 %r{100 + i}, 0x3F800000;" for i in range(columns)),
             f"	tcgen05.st.sync.aligned.32x32b.x{columns}.b32 [%r12], {name_registers(columns)};"]
    return "\n".join(lines)


def load(at: int, guard: str = "") -> str:
    return f"	add.s32 %r12, %r7, {at};\n	{guard}tcgen05.ld.sync.aligned.32x32b.x4.b32 {name_registers(4)}, [%r12];"


def store(at: int, guard: str = "") -> str:
    return f"	add.s32 %r12, %r7, {at};\n	{guard}tcgen05.st.sync.aligned.32x32b.x4.b32 [%r12], {{%r1, %r1, %r1, %r1}};"


def multiply(a: int, to: int, word: int, thread: str = "%p2") -> str:
    """128 rows of A from a column on, into a sum from another one on."""
    return (f"	add.s32 %r9, %r5, {to};\n	add.s32 %r10, %r5, {a};\n"
            f"	@!{thread} tcgen05.mma.cta_group::1.kind::f16 [%r9], [%r10], %rd7, {word}, %p6;")


def commit(thread: str = "%p2", barrier: int = 8) -> str:
    return f"	@!{thread} tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r1+{barrier}];"


def wait(barrier: int = 8) -> str:
    """For its first phase."""
    return f"$wait{barrier}:\n	mbarrier.try_wait.parity.shared.b64 %p4, [%r1+{barrier}], 0;\n	@!%p4 bra $wait{barrier};"
