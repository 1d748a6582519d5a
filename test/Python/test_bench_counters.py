"""The bench of counters: what it reads of Nsight Compute's tables, and what it says where a tool is missing. No GPU."""

import argparse
import json
import math
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.made_of("bench/gpu/counters.py", "bench/gpu/ncu_report.py", "bench/gpu/peers.py", "test/Python/conftest.py")
TOOLS = next(iter(sorted((ROOT / ".venv").glob("lib/python3*/site-packages/nvidia/cu13/bin"))), Path("/none"))

# `ncu --query-metrics`: a base name, a kind, and what it is. This version has no sm__pipe_tensor_cycles_active.
KNOWN = """\
Device NVIDIA H100 80GB HBM3 (GH100)
gpu__time_duration                                   Counter nanosecond # incremental duration in nanoseconds
l1tex__data_bank_conflicts_pipe_lsu_mem_shared       Counter            # of data bank conflicts by shared memory
l1tex__data_pipe_lsu_wavefronts_mem_shared           Counter            # of wavefronts of shared memory
sm__cycles_active                                    Counter cycle      # of cycles with at least one warp in flight
sm__cycles_elapsed                                   Counter cycle      # of cycles elapsed on SM
sm__inst_executed_pipe_xu                            Counter inst       # of instructions executed by XU pipe
sm__pipe_tensor_op_hmma_cycles_active                Counter cycle      # of cycles where HMMA tensor pipe was active
smsp__average_warps_issue_stalled_gmma_per_issue_active     Ratio warp  average # of warps stalled on GMMA
smsp__average_warps_issue_stalled_wait_per_issue_active     Ratio warp  average # of warps stalled on a fixed latency
smsp__average_warps_issue_stalled_wait_not_issued_per_issue_active_x Ratio
smsp__inst_executed                                  Counter inst       # of warp instructions executed
"""

HEAD = [
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size", "Device", "CC",
    "gpu__time_duration.sum", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", "sm__cycles_active.avg", "sm__cycles_elapsed.avg.per_second",
    "sm__cycles_elapsed.max", "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active",
    "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active",
    "smsp__average_warps_issue_stalled_gmma_per_issue_active.ratio",
    "smsp__average_warps_issue_stalled_wait_per_issue_active.ratio", "smsp__inst_executed.sum",
]
UNITS = [""] * 11 + ["ns", "", "", "cycle", "hz", "cycle", "%", "%", "inst", "inst", "inst"]
# Thousands have commas, and a name may have them too.
LAUNCHES = [
    ["0", "41", "python3.11", "127.0.0.1", "gradient_rows", "1", "7", "(128, 1, 1)", "(32, 16, 4)", "0", "9.0",
     "94,880", "0", "1,048,576", "150,000.5", "1,560,000,000", "160,000", "1.5", "0", "0", "2.5", "9,000,000"],
    ["1", "41", "python3.11", "127.0.0.1", "gradient_key_value", "1", "7", "(384, 1, 1)", "(32, 16, 4)", "0", "9.0",
     "1,214,016", "6,300,000", "192,000,000", "1,980,000", "1,745,000,000", "2,118,000", "21.2", "66.2", "0.49", "1.40",
     "268,000,000"],
    ["2", "41", "python3.11", "127.0.0.1", "void at::fill<int, 4>(float*, int)", "1", "7", "(128, 1, 1)", "(1, 1, 1)", "0", "9.0",
     "2,048", "n/a", "n/a", "900", "1,500,000,000", "3,000", "0", "0", "", "0.1", "640"],
]


def write_csv(*rows):
    return "".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in rows)


RAW = "==PROF== Connected to process 41 (/usr/bin/python3.11)\nwarming up\n" + write_csv(HEAD, UNITS, *LAUNCHES)

SOURCE_HEAD = ["#", "Address", "Source", "Warp Stall Sampling (All Samples)", "Warp Stall Sampling (Not-issued Samples)",
               "# Samples", "stall_gmma", "stall_wait", "stall_wait_not_issued"]
SOURCE = "==PROF== Connected to process 41\n" + write_csv(
    ["Kernel Name", "gradient_key_value"],
    SOURCE_HEAD,
    ["1", "0x7f00", "      LDC R1, c[0x0][0x28] ", "1", "0", "1", "0", "1", "0"],
    ["2", "0x7f10", "@!P0 HGMMA.64x128x16.F32.BF16 R24, gdesc[UR4] ", "600", "590", "600", "550", "50", "40"],
    ["3", "0x7f20", "MUFU.EX2 R2, R3 ", "399", "1", "399", "0", "1,399", "1"],
)
DISASSEMBLY = """\
\t.section\t.nv_debug_line_sass,"",@progbits
        /*0000*/ \t.byte\t0x16, 0x00
.text.gradient_key_value:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
\t//## File ".nv_debug_ptx_txt", line 7
        /*0010*/              @!P0 HGMMA.64x128x16.F32.BF16 R24, gdesc[UR4] ;
        /*0020*/                   MUFU.EX2 R2, R3 ;
.L_x_1:
"""


@pytest.fixture
def report(import_bench):
    return import_bench("ncu_report")


def test_the_first_counter_that_is_there(report):
    chosen, stalls = report.choose_metrics(KNOWN.splitlines())
    assert chosen["tensor_percent"] == "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active"
    assert "dram_bytes" not in chosen and chosen["clock_hz"] == "sm__cycles_elapsed.avg.per_second"
    assert stalls == [x for x in HEAD if "stalled" in x]


def test_launches(report):
    chosen, _ = report.choose_metrics(KNOWN.splitlines())
    launches = report.read_launches(RAW, chosen)
    assert [x.kernel for x in launches] == [row[4] for row in LAUNCHES]
    main = report.find_main(launches)
    assert (main.kernel, main.grid) == ("gradient_key_value", "(32, 16, 4)")
    assert main.values["time_ns"] == 1214016 and main.values["bank_conflicts"] == 6.3e6
    assert main.stalls == {"gmma": 0.49, "wait": 1.4}
    assert main.idle_percent == pytest.approx(6.516, abs=1e-3)
    assert math.isnan(launches[2].values["bank_conflicts"]) and math.isnan(launches[2].stalls["gmma"])


def test_a_table_of_two(report):
    chosen, _ = report.choose_metrics(KNOWN.splitlines())
    launches = report.read_launches(RAW, chosen)
    table = report.make_table({"attn": launches, "fa3": launches[2:]})
    assert table[0] == "| | attn | fa3 |"
    assert "| multiprocessors idle, % | 6.5 | 70.0 |" in table
    assert "| bank conflicts, millions | 6.300 | - |" in table
    assert "| tensor, % | 66.2 | 0.0 |" in table
    assert table.index("| stall an issue: wait | 1.40 | 0.10 |") < table.index("| stall an issue: gmma | 0.49 | - |")
    assert "| all kernels, us | 95 + 1214 + 2 | 2 |" in table
    assert not any("dram" in line for line in table)


@pytest.mark.parametrize(
    "text, words",
    [
        ("", "got: nothing"),
        ("==PROF== Connected\n==ERROR== ERR_NVGPUCTRPERM - no permission\nmore\n", "need the superuser"),
        ("==PROF== Connected\n==WARNING== No kernels were profiled.\n", "No kernels were profiled"),
        (write_csv(HEAD, UNITS), "a table of launches"),
        (RAW.replace('"ns"', '"ms"'), "expected times in ns, got 'ms'"),
    ],
)
def test_what_is_no_table_of_launches(report, text, words):
    chosen, _ = report.choose_metrics(KNOWN.splitlines())
    with pytest.raises(report.ReportError, match=words):
        report.read_launches(text, chosen)


def test_samples_by_line(report):
    instructions = report.read_instructions(SOURCE)["gradient_key_value"]
    assert [x.samples for x in instructions] == [1, 600, 399]
    lines = report.read_lines(DISASSEMBLY)
    assert lines == {"gradient_key_value": [None, 7, 7]}
    (line, both), (nowhere, first) = report.add_by_line(instructions, lines["gradient_key_value"])
    assert (line, both.text, both.samples) == (7, "HGMMA MUFU", 999)
    assert both.stalls == {"gmma": 550, "wait": 1449}
    assert (nowhere, first.text, first.samples) == (None, "LDC", 1)
    twice = report.read_instructions(SOURCE + SOURCE)["gradient_key_value"]
    assert [x.samples for x in twice] == [2, 1200, 798] and twice[1].stalls == {"gmma": 1100, "wait": 100}
    with pytest.raises(report.ReportError, match="expected 2 instructions, as the disassembler has, got 3"):
        report.add_by_line(instructions, [7, 7])
    with pytest.raises(report.ReportError, match="expected one machine code of gradient_key_value, got two"):
        report.read_instructions(SOURCE + SOURCE.replace("MUFU.EX2", "MUFU.RCP"))
    with pytest.raises(report.ReportError, match="a table of instructions"):
        report.read_instructions(RAW)


PTX = """\
.version 8.6
.target sm_90a
.address_size 64
.visible .entry scale(.param .u64 scale_param_0)
{
.reg .b32 %r<3>;
.reg .b64 %rd<3>;
ld.param.b64 %rd1, [scale_param_0];
ld.global.b32 %r1, [%rd1];
ex2.approx.ftz.f32 %r2, %r1;
st.global.b32 [%rd1], %r2;
ret;
}
"""


@pytest.mark.skipif(not (TOOLS / "nvdisasm").exists(), reason="make assembler installs ptxas and nvdisasm")
def test_lines_of_the_real_assembler(report, tmp_path):
    """Numbers of lines change no instruction, and are those of the text."""
    (tmp_path / "a.ptx").write_text(PTX)

    def assemble(*options):
        subprocess.run([TOOLS / "ptxas", "-arch=sm_90a", *options, "a.ptx", "-o", "a.cubin"], cwd=tmp_path, check=True)
        command = [TOOLS / "nvdisasm", "--print-line-info-ptx", "a.cubin"]
        return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    def list_code(text):
        return [x.split("*/")[1].strip() for x in text.partition(".text.scale:")[2].splitlines() if report.CODE.match(x)]

    plain, known = assemble(), assemble("-lineinfo")
    assert list_code(plain) == list_code(known) and len(list_code(known)) > 5
    lines = report.read_lines(known)["scale"]
    assert len(lines) == len(list_code(known))
    at = next(i for i, code in enumerate(list_code(known)) if code.startswith("MUFU.EX2"))
    assert PTX.splitlines()[lines[at] - 1].startswith("ex2")


@pytest.fixture
def bench(import_bench):
    return import_bench("counters")


@pytest.mark.skipif(not (TOOLS / "nvdisasm").exists(), reason="make assembler installs ptxas and nvdisasm")
@pytest.mark.parametrize("pass_, kernel", [("forward", "attention"), ("backward", "gradient_key_value")])
def test_our_kernels_know_their_lines(bench, report, tmp_path, monkeypatch, pass_, kernel):
    pytest.importorskip("torch")
    from attn import _library

    tools = _library.library_path.parent.parent / "bin"
    if not (tools / "attn-translate").exists():
        pytest.skip("attn-translate is not built")
    monkeypatch.setenv("PATH", str(TOOLS), prepend=":")
    ptx, code, plan = bench.compile_ours("d64-causal-s512", pass_, argparse.Namespace(bin=str(tools)), tmp_path)
    disassembly = subprocess.run([TOOLS / "nvdisasm", "--print-line-info-ptx", code], check=True, capture_output=True, text=True)
    lines = report.read_lines(disassembly.stdout)
    assert set(lines) == {entry["name"] for entry in json.loads(plan.read_text())["kernels"]}
    text = ptx.read_text().splitlines()
    exponentials = sum("ex2.approx" in text[line - 1] for line in set(lines[kernel]) if line)
    assert exponentials >= 64


def test_without_ncu(bench, capsys, monkeypatch):
    monkeypatch.setenv("PATH", "/none")
    assert bench.main([]) == 1
    assert "counters.py: ncu: expected it in $PATH, got none (Nsight Compute" in capsys.readouterr().err


def write_tool(path, outputs):
    """A program that prints a text for the first of some words that it is called with, and keeps its words."""
    lines = ["#!/bin/sh", f'echo "$@" >> {path}.log']
    for i, (word, text) in enumerate(outputs.items()):
        (path.parent / f"{path.name}.{i}").write_text(text)
        lines.append(f'case " $* " in *" {word} "*) cat {path}.{i}; exit 0;; esac')
    path.write_text("\n".join([*lines, "exit 9", ""]))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_a_tool_that_lists_nothing(bench, capsys, tmp_path, monkeypatch):
    write_tool(tmp_path / "ncu", {"--query-metrics": "==ERROR== no device\n"})
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert bench.main([]) == 1
    assert "expected ncu to list its counters, got: ==ERROR== no device" in capsys.readouterr().err


def test_a_cell(bench, capsys, tmp_path, monkeypatch):
    """All but the GPU: each candidate in a process under ncu, and a result file without NaN."""
    pytest.importorskip("torch")
    assert shutil.which("cat")
    write_tool(tmp_path / "ncu", {"--query-metrics": KNOWN, "--run fa3": "==ERROR== crashed\n", "raw": RAW,
                                  "--version": "NVIDIA (R) Nsight Compute Command Line Profiler\nVersion 2025.3.1.0\n"})
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    rates = {"ms": {"attn": [1.3], "fa3": [1.2]}, "tflops": {"attn": 430.0, "fa3": 460.0}}
    monkeypatch.setattr(bench, "time_candidates", lambda config, pass_, o: rates)
    out = tmp_path / "counters.json"
    asked = ["--configs", "d128-causal-s4096", "--passes", "backward", "--lines", "--bin", "/none", "--out", str(out)]
    assert bench.main(asked) == 0
    told = capsys.readouterr().out
    assert "fa3 left out: expected a table of launches, got: ==ERROR== crashed" in told
    assert "| stall an issue: wait | 1.40 |" in told
    assert "lines left out: nvdisasm: expected it in $PATH, got none (make assembler)" in told
    result = json.loads(out.read_text())
    cell = result["cells"][0]
    assert (cell["config"], cell["pass"], list(cell["launches"])) == ("d128-causal-s4096", "backward", ["attn"])
    assert cell["launches"]["attn"][1]["idle_percent"] == pytest.approx(6.516, abs=1e-3)
    assert cell["launches"]["attn"][2]["values"]["bank_conflicts"] is None
    assert result["ncu"] == "Version 2025.3.1.0"
    command = next(line for line in (tmp_path / "ncu.log").read_text().splitlines() if "--run attn" in line)
    for words in ("--clock-control none", "--profile-from-start off", "--page raw", "--print-units base",
                  "counters.py --run attn d128-causal-s4096 backward"):
        assert words in command


def test_no_such_config(bench, capsys, tmp_path, monkeypatch):
    pytest.importorskip("torch")
    write_tool(tmp_path / "ncu", {"--query-metrics": KNOWN})
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert bench.main(["--configs", "d12-*"]) == 1
    assert "--configs: expected a pattern of some name of sdpa.py, got d12-*" in capsys.readouterr().err
