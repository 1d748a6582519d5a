"""The notebook runs, and shows what it showed."""

import importlib.machinery
import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("torch")
PATH = Path(__file__).parents[2] / "docs" / "notebook"


def test_the_notebook_is_of_today():
    if not PATH.exists():
        pytest.skip("no documents beside the tests")
    loader = importlib.machinery.SourceFileLoader("notebook", str(PATH))
    notebook = importlib.util.module_from_spec(importlib.util.spec_from_loader("notebook", loader))
    loader.exec_module(notebook)
    assert notebook.run_notebook() == notebook.NOTEBOOK.read_text(), "run docs/notebook"
