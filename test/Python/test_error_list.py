"""docs/errors: the pages of errors are made of the tests that expect them."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATH = ROOT / "docs" / "errors"
if not PATH.exists():
    pytest.skip("no documents beside the tests", allow_module_level=True)
errors = runpy.run_path(str(PATH), run_name="errors")
Raised, Told = errors["Raised"], errors["Told"]

# Refusals that no test expects may be so many: most of them need several processes. `docs/errors --untested` names them.
UNTESTED = 20


def test_refusals_have_tests():
    found, _ = errors["match"]()
    assert len(found) > 200
    untested = [f"{x.where}: {x.message}" for x, told in found.items() if not told]
    assert len(untested) <= UNTESTED, untested


def test_what_a_test_expects():
    raised = Raised("window", "None or (left, right) of distances", "", "x.py")
    told = lambda text: errors["is_told"](raised, Told(text, "test", True, ""))  # noqa: E731
    assert told("window: expected None or (left, right) of distances, got 5")
    assert told("window: expected None or")
    assert told("None or (left, right) of distances")
    assert not told("mask: expected None or")
    # A word or two are those of many.
    short = Raised("mask", "None", "", "x.py")
    assert errors["is_told"](short, Told("mask: expected None, got 3", "test", True, ""))
    assert not errors["is_told"](short, Told("expected None, got 3", "test", True, ""))


TEST = '''
def test_it():
    with pytest.raises(attn.Error, match=r"^scale: expected \\(a number\\), got x"):
        attn.attention(q, k, v, scale="x")
    raises("mask: expected a function", attn.attention, q, mask=3, code="invalid argument")
'''


def test_texts_and_calls(tmp_path, monkeypatch):
    (tmp_path / "test_x.py").write_text(TEST)
    monkeypatch.setitem(errors["list_told_by"].__globals__, "ROOT", tmp_path)
    told = {x.text: x for x in errors["list_told_by"](tmp_path / "test_x.py")}
    first, second = told["scale: expected (a number), got x"], told["mask: expected a function"]
    assert first.call == "attn.attention(q, k, v, scale='x')" and first.is_error
    assert second.call == "attn.attention(q, mask=3)" and second.test == "test_x.py::test_it"


def test_pages():
    pages = errors["write_pages"]()
    python, ir, tools = pages["errors.md"], pages["errors-ir.md"], pages["errors-tools.md"]
    assert "**scale**: expected a number that f32 holds" in python
    # Of the library under the package too.
    assert "**q**: expected H to be a multiple of Hkv" in python
    assert ir.count("\n| ") > 1000
    assert "*D of query equals D of key*" in ir
    assert "fails when: the form is neither" in ir
    assert "attn-run f32.mlir --frobnicate" in tools
    # Nothing of a message is Markdown.
    assert "|" not in errors["escape"]("a | b [c](d)") and "[" not in errors["escape"]("[c](d)")
