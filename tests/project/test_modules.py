"""Modules can be held in the head: at most 500 lines, and 20 of them in a folder."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import branchwise

ROOT = Path(branchwise.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))


def test_no_module_is_long():
    lines = {
        str(path.relative_to(ROOT)): len(path.read_text("utf-8").splitlines())
        for path in MODULES
    }
    assert {name: n for name, n in lines.items() if n > 500} == {}


def test_no_folder_has_many_modules():
    files = Counter(path.parent.relative_to(ROOT) for path in MODULES)
    assert {str(folder): n for folder, n in files.items() if n > 20} == {}
