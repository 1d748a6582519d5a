"""What Nsight Compute's `--csv` prints, read: counters of launches, and samples of instructions. Needs no GPU and no PyTorch."""

from __future__ import annotations

import csv
import math
import re
from dataclasses import dataclass, field
from typing import Dict, Iterable, List, Optional, Sequence, Tuple

STALLS = "smsp__average_warps_issue_stalled_"
STALLS_END = "_per_issue_active"
SAMPLES = "Warp Stall Sampling (All Samples)"

# What is asked of each launch: the first counter of a list that the tool has for this chip. Names differ between its versions.
COUNTERS: Dict[str, Tuple[str, ...]] = {
    "time_ns": ("gpu__time_duration.sum",),
    "cycles_active": ("sm__cycles_active.avg",),
    "cycles_elapsed": ("sm__cycles_elapsed.max",),
    "clock_hz": ("sm__cycles_elapsed.avg.per_second",),
    "instructions": ("smsp__inst_executed.sum",),
    "issue_percent": ("smsp__issue_active.avg.pct_of_peak_sustained_active",),
    "tensor_percent": (
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
        "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active",
        "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active",
    ),
    "alu_percent": ("sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active",),
    "fma_percent": ("sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active",),
    "xu_percent": ("sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active",),
    "lsu_percent": ("sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_active",),
    "shared_wavefronts": ("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",),
    "bank_conflicts": ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",),
    "l2_sectors": ("lts__t_sectors.sum",),
    "dram_bytes": ("dram__bytes.sum",),
}

# Shown as counted, the rest in the units that their names end in.
MILLIONS = ("cycles_active", "cycles_elapsed", "instructions", "shared_wavefronts", "bank_conflicts", "l2_sectors", "dram_bytes")


class ReportError(Exception):
    """Output that is not what was asked for; the message has the tool's own words."""


@dataclass
class Launch:
    """One launch of one kernel, by the names of COUNTERS, and stalls an issue by their reasons."""

    kernel: str
    grid: str = ""
    block: str = ""
    values: Dict[str, float] = field(default_factory=dict)
    stalls: Dict[str, float] = field(default_factory=dict)

    @property
    def idle_percent(self) -> float:
        """How long a multiprocessor has no block, in the mean of all: ends of grids, and starts."""
        active, elapsed = (self.values.get(name, math.nan) for name in ("cycles_active", "cycles_elapsed"))
        return 100 * (1 - active / elapsed) if elapsed else math.nan


@dataclass
class Instruction:
    """One of machine code, with the samples that found a warp there, by the reasons that it waited for."""

    text: str
    samples: int
    stalls: Dict[str, int]


def choose_metrics(known: Iterable[str]) -> Tuple[Dict[str, str], List[str]]:
    """Of what `ncu --query-metrics` lists: a counter for each name of COUNTERS that has one, and all stalls an issue."""
    bases = {line.split()[0] for line in known if line.strip()}
    chosen: Dict[str, str] = {}
    for name, candidates in COUNTERS.items():
        found = next((c for c in candidates if c.partition(".")[0] in bases), None)
        if found:
            chosen[name] = found
    stalls = [f"{base}.ratio" for base in sorted(bases) if base.startswith(STALLS) and base.endswith(STALLS_END)]
    return chosen, stalls


def _number(text: str) -> float:
    """What CSV holds, with commas between thousands; NaN for a counter that was not collected ("n/a", empty)."""
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return math.nan


def _rows(text: str) -> List[List[str]]:
    """Those of the table, without the tool's own lines ("==PROF== ...") and the program's."""
    return [row for row in csv.reader(line for line in text.splitlines() if line.startswith('"'))]


def _complaint(text: str) -> str:
    """The tool's errors, or else its last lines."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("==ERROR==")]
    if any("ERR_NVGPUCTRPERM" in line for line in lines):
        errors.append("counters need the superuser, or the driver's NVreg_RestrictProfilingToAdminUsers=0")
    return " ".join(errors or lines[-3:]) or "nothing"


def read_launches(text: str, chosen: Dict[str, str]) -> List[Launch]:
    """Of `--page raw --csv --print-units base`: a head, a row of units, and a row for each launch."""
    rows = _rows(text)
    start = next((at for at, row in enumerate(rows) if "Kernel Name" in row and "ID" in row), None)
    if start is None or len(rows) < start + 3:
        raise ReportError(f"expected a table of launches, got: {_complaint(text)}")
    head, units = rows[start], rows[start + 1]
    names = {metric: name for name, metric in chosen.items()}
    launches = []
    for row in rows[start + 2 :]:
        cells = dict(zip(head, row))
        launch = Launch(cells["Kernel Name"], cells.get("Grid Size", ""), cells.get("Block Size", ""))
        for metric, unit in zip(head, units):
            reason = metric.removesuffix(".ratio")
            if metric in names:
                launch.values[names[metric]] = _number(cells[metric])
            elif reason.startswith(STALLS) and reason.endswith(STALLS_END):
                launch.stalls[reason[len(STALLS) : -len(STALLS_END)]] = _number(cells[metric])
            # Units of the base are asked for; another one would be a factor of 1000 unnoticed.
            if names.get(metric) == "time_ns" and unit not in ("ns", "nsecond"):
                raise ReportError(f"expected times in ns, got '{unit}'")
        launches.append(launch)
    return launches


def read_instructions(text: str) -> Dict[str, List[Instruction]]:
    """Of `--page source --print-source sass --csv`: a table for each launch, by its kernel; those of one kernel are added."""
    found: Dict[str, List[Instruction]] = {}
    kernel, head, current = "", [], []  # type: str, List[str], List[Instruction]

    def close() -> None:
        known = found.setdefault(kernel, current)
        if known is not current:
            if [i.text for i in known] != [i.text for i in current]:
                raise ReportError(f"expected one machine code of {kernel}, got two")
            for to, one in zip(known, current):
                to.samples += one.samples
                to.stalls = {name: to.stalls.get(name, 0) + count for name, count in one.stalls.items()}

    for row in _rows(text):
        if row[0] == "Kernel Name":
            if head:
                close()
            kernel, head, current = row[1], [], []
        elif "Source" in row and SAMPLES in row:
            head, current = row, []
        elif head:
            cells = dict(zip(head, row))
            stalls = {name[len("stall_") :]: int(_number(x) or 0) for name, x in cells.items()
                      if name.startswith("stall_") and not name.endswith("_not_issued") and _number(x) > 0}
            samples = _number(cells[SAMPLES])
            current.append(Instruction(cells["Source"].strip(), 0 if math.isnan(samples) else int(samples), stalls))
    if not head:
        raise ReportError(f"expected a table of instructions with samples, got: {_complaint(text)}")
    close()
    return found


LINE = re.compile(r'## File ".nv_debug_ptx_txt", line (\d+)')
SECTION = re.compile(r"\.text\.(\w+):")
CODE = re.compile(r"\s*/\*[0-9a-f]{4,}\*/\s+\S.*;")


def read_lines(disassembly: str) -> Dict[str, List[Optional[int]]]:
    """Of `nvdisasm --print-line-info-ptx`: the line of PTX of each instruction, by kernel; none before the first one."""
    lines: Dict[str, List[Optional[int]]] = {}
    current: List[Optional[int]] = []
    line: Optional[int] = None
    for text in disassembly.splitlines():
        section, place = SECTION.match(text), LINE.search(text)
        if section:
            current, line = lines.setdefault(section.group(1), []), None
        elif place:
            line = int(place.group(1))
        elif CODE.match(text) and lines:
            current.append(line)
    return lines


def add_by_line(instructions: Sequence[Instruction], lines: Sequence[Optional[int]]) -> List[Tuple[Optional[int], Instruction]]:
    """Samples of each line of PTX, most first. The text is the names of the instructions that the line became."""
    if len(instructions) != len(lines):
        raise ReportError(f"expected {len(lines)} instructions, as the disassembler has, got {len(instructions)}")
    sums: Dict[Optional[int], Instruction] = {}
    for instruction, line in zip(instructions, lines):
        name = re.sub(r"^@!?U?P\w+\s+", "", instruction.text).split()[0].split(".")[0].rstrip(";")
        to = sums.setdefault(line, Instruction("", 0, {}))
        to.samples += instruction.samples
        if name not in to.text.split():
            to.text = f"{to.text} {name}".strip()
        for reason, count in instruction.stalls.items():
            to.stalls[reason] = to.stalls.get(reason, 0) + count
    return sorted(sums.items(), key=lambda item: -item[1].samples)


def find_main(launches: Sequence[Launch]) -> Launch:
    """The kernel that takes longest."""
    return max(launches, key=lambda launch: launch.values.get("time_ns", 0))


def make_table(candidates: Dict[str, List[Launch]], least_stall: float = 0.05) -> List[str]:
    """Lines of a table in Markdown: the longest kernel of each candidate beside the others', and then all of their times."""
    mains = {name: find_main(launches) for name, launches in candidates.items()}
    lines = ["| | " + " | ".join(mains) + " |", "|---" * (1 + len(mains)) + "|"]

    def add(title: str, values: List[str]) -> None:
        lines.append(f"| {title} | " + " | ".join(values) + " |")

    def show(value: float, digits: int = 2) -> str:
        return "-" if math.isnan(value) else f"{value:.{digits}f}"

    add("kernel", [f"`{main.kernel[:48]}`" for main in mains.values()])
    add("blocks", [main.grid for main in mains.values()])
    add("time, us", [show(main.values.get("time_ns", math.nan) / 1e3, 1) for main in mains.values()])
    add("clock, MHz", [show(main.values.get("clock_hz", math.nan) / 1e6, 0) for main in mains.values()])
    add("multiprocessors idle, %", [show(main.idle_percent, 1) for main in mains.values()])
    for name in COUNTERS:
        if name in ("time_ns", "clock_hz"):
            continue
        values = [main.values.get(name, math.nan) for main in mains.values()]
        if all(map(math.isnan, values)):
            continue
        if name in MILLIONS:
            add(f"{name.replace('_', ' ')}, millions", [show(value / 1e6, 3) for value in values])
        else:
            add(name.replace("_percent", ", %"), [show(value, 1) for value in values])
    reasons = {reason for main in mains.values() for reason in main.stalls}
    sums = {reason: max(main.stalls.get(reason, 0) for main in mains.values()) for reason in reasons}
    for reason in sorted(reasons, key=lambda r: -sums[r]):
        if sums[reason] >= least_stall:
            add(f"stall an issue: {reason}", [show(main.stalls.get(reason, math.nan)) for main in mains.values()])
    add("all kernels, us", [" + ".join(show(x.values.get("time_ns", math.nan) / 1e3, 0) for x in launches)
                            for launches in candidates.values()])
    return lines
