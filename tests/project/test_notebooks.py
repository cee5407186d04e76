"""Notebooks are made from scripts: their cells, what they show, when they are old."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import branchwise

EXAMPLES = Path(__file__).parents[2] / "examples"


def load_example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses look for it
    spec.loader.exec_module(module)
    return module


maker = load_example("make_notebooks")
pictures = load_example("_pictures")
STUDIES = [path.stem for path in maker.studies()]

SCRIPT = '''"""A study.

It has ``code`` in its title.
"""

import math

from _shared import something

# %%
# ## Prose
#
# About *this*.

x = math.sqrt(4)
# A comment of the code.
print("two", x)

# %%
x

# %% [script only]
figures = {"x": x}
'''


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "study.py"
    path.write_text(SCRIPT, encoding="utf-8")
    return path


def test_studies():
    seeds = [f"seed_00{n}" for n in range(5)]
    others = ["adult", "credit", "mushroom"]
    assert [name[:8] for name in STUDIES] == [*others, *seeds, "studio"]


def test_a_script_is_taken_apart(script):
    cells = maker.cells_of(script)
    assert [(cell.kind, cell.source) for cell in cells] == [
        ("markdown", "# A study.\n\nIt has `code` in its title."),
        ("code", 'import sys\n\nsys.path.insert(0, "..")'),
        ("code", "import math\n\nfrom _shared import something"),
        ("markdown", "## Prose\n\nAbout *this*."),
        ("code", 'x = math.sqrt(4)\n# A comment of the code.\nprint("two", x)'),
        ("code", "x"),
    ]


def test_cells_show_what_they_print_and_their_last_value():
    sources = ["x = 2\nprint(x)", "x + 1", "x = 5", "x", "None"]
    shown = maker.run([maker.Cell("code", source) for source in sources])
    text = [
        [(one["output_type"], one.get("text") or one["data"]) for one in outputs]
        for outputs in shown
    ]
    assert text == [
        [("stream", ["2\n"])],
        [("execute_result", {"text/plain": ["3"]})],
        [],
        [("execute_result", {"text/plain": ["5"]})],
        [],
    ]


def test_rich_values():
    source = """
class Shown:
    def __repr__(self): return "a picture"
    def _repr_html_(self): return "<b>\\n</b>"
    def _repr_png_(self): return bytes(3)
class Long(Shown):
    def _repr_html_(self): return "x" * 60_001
    def _repr_png_(self): return None
"""
    cells = [maker.Cell("code", s) for s in (source, "Shown()", "Long()")]
    _, [rich], [long] = maker.run(cells)
    assert rich["data"] == {
        "text/plain": ["a picture"],
        "text/html": ["<b>\n", "</b>"],
        "image/png": "AAAA",
    }
    assert long["data"] == {"text/plain": ["a picture"]}


def test_a_warning_or_an_error_stops():
    cell = maker.Cell("code", "import warnings\nwarnings.warn('old', UserWarning)")
    with pytest.raises(UserWarning, match="old"):
        maker.run([cell])
    with pytest.raises(ZeroDivisionError):
        maker.run([maker.Cell("code", "1 / 0")])


def test_names_of_cells_depend_on_what_they_contain():
    cells = [maker.Cell("code", source) for source in ("x = 1", "x = 2", "x = 1")]
    names = [cell["id"] for cell in maker.notebook(cells)["cells"]]
    later = [cell["id"] for cell in maker.notebook(cells[1:])["cells"]]
    assert len(set(names)) == 3
    assert later == [names[1], names[0]]


@pytest.mark.parametrize("study", STUDIES)
def test_notebooks_are_up_to_date(study):
    assert maker.is_up_to_date(EXAMPLES / f"{study}.py"), "run: make notebooks"


def test_notebooks_without_a_study_are_gone():
    notebooks = (EXAMPLES / "notebooks").iterdir()
    assert sorted(path.name for path in notebooks) == [f"{s}.ipynb" for s in STUDIES]


def test_check_tells_which_are_old(monkeypatch, tmp_path, capsys):
    assert maker.main(["--check"]) == 0
    monkeypatch.setattr(maker, "NOTEBOOKS", tmp_path)
    assert maker.main(["--check", "mushroom"]) == 1
    assert capsys.readouterr().out == (
        "not up to date: mushroom.ipynb (make notebooks)\n"
    )


def test_what_the_maker_refuses(monkeypatch, capsys):
    with pytest.raises(SystemExit):
        maker.main(["mushrooms"])
    assert (
        "no study 'mushrooms'; there are adult, credit, mush" in capsys.readouterr().err
    )
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit):
        maker.main(["mushroom"])
    assert "pip install 'branchwise[plot]'" in capsys.readouterr().err


def test_a_change_makes_a_notebook_old(monkeypatch, tmp_path):
    monkeypatch.setattr(maker, "NOTEBOOKS", tmp_path)
    path = tmp_path / "small.py"
    path.write_text('"""Small."""\n\n# %%\nprint(1)\n', encoding="utf-8")
    assert not maker.is_up_to_date(path)
    made = maker.write(path)
    before = made.read_bytes()
    assert maker.is_up_to_date(path)
    assert maker.write(path).read_bytes() == before
    path.write_text('"""Small."""\n\n# %%\nprint(2)\n', encoding="utf-8")
    assert not maker.is_up_to_date(path)


def check_structure(notebook):
    """Check what nbformat 4.5 asks for, as far as we write it."""
    assert set(notebook) == {"cells", "metadata", "nbformat", "nbformat_minor"}
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    identities = [cell["id"] for cell in notebook["cells"]]
    assert len(set(identities)) == len(identities)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in identities)
    for cell in notebook["cells"]:
        keys = {"cell_type", "id", "metadata", "source"}
        if cell["cell_type"] == "code":
            keys |= {"execution_count", "outputs"}
        assert set(cell) == keys
        assert all(isinstance(line, str) for line in cell["source"])


@pytest.mark.parametrize("study", STUDIES)
def test_notebooks_are_valid(study):
    text = (EXAMPLES / "notebooks" / f"{study}.ipynb").read_text(encoding="utf-8")
    notebook = json.loads(text)
    check_structure(notebook)
    outputs = [o for cell in notebook["cells"] for o in cell.get("outputs", ())]
    kinds = {output["output_type"] for output in outputs}
    assert {"stream"} <= kinds <= {"stream", "execute_result"}
    assert "/tmp" not in text
    assert "/home" not in text
    assert len(text) < 400_000


@pytest.mark.parametrize("study", STUDIES)
def test_notebooks_are_valid_for_nbformat(study):
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(EXAMPLES / "notebooks" / f"{study}.ipynb", as_version=4)
    nbformat.validate(notebook)


@pytest.mark.parametrize(
    ("study", "count"), [("seed_004_digits", 12), ("adult", 1), ("credit", 2)]
)
def test_notebooks_have_their_pictures(study, count):
    text = (EXAMPLES / "notebooks" / f"{study}.ipynb").read_text(encoding="utf-8")
    assert text.count('"image/png"') == count


def test_a_notebook_runs_in_its_own_folder():
    """The scripts are one folder up, and nothing else points there."""
    cells = maker.stored_cells(EXAMPLES / "notebooks" / "seed_003_golf.ipynb")
    code = [cell.source for cell in cells if cell.kind == "code"]
    package = Path(branchwise.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-"],
        env={**os.environ, "PYTHONPATH": str(package)},
        input="\n".join(code),
        capture_output=True,
        text=True,
        cwd=EXAMPLES / "notebooks",
        check=False,
    )
    assert done.stderr == ""
    assert "Mutual information of each column" in done.stdout


def images():
    light, dark = np.zeros((8, 8)), np.full((8, 8), 16.0)
    return np.array([light, dark, dark, light])


def test_images_as_text():
    lines = pictures.as_text(images()[:2], ["0", "1, it says 8"]).splitlines()
    assert lines == ["0                 1, it says 8", *[18 * " " + 16 * "@"] * 8]


def fish_tree():
    fish = branchwise.datasets.load("fish")
    return branchwise.ID3Classifier().fit(fish.X, fish.y)


def every_picture():
    scores = np.array([0.9, 0.8]), np.array([0.1, 0.1])
    return [
        pictures.samples("samples", images(), np.array([0, 1, 1, 0]), rows=2),
        pictures.confusion("confusion", np.array([[5, 1], [0, 3]]), ["a", "b"]),
        pictures.search("search", [("depth", [1, 2], scores, scores)] * 2),
        pictures.calibration("calibration", {"tree": ([0.1, 0.9], [0.2, 0.8])}),
        pictures.curve("curve", {1: 0.5, 2: 0.75}, "depth", "F1"),
        pictures.tree("tree", fish_tree(), (4, 3)),
    ]


@pytest.mark.parametrize("at", range(6))
def test_pictures_are_saved(at, tmp_path):
    pytest.importorskip("matplotlib")
    path = every_picture()[at].save(tmp_path)
    assert path.parent == tmp_path
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.read_bytes() == every_picture()[at].png()


def test_pictures_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    picture = every_picture()[0]
    assert picture._repr_png_() is None
    assert repr(picture) == "<picture 'samples'>"


@pytest.mark.slow
def test_the_study_of_digits_saves_its_pictures(tmp_path):
    pytest.importorskip("matplotlib")
    script = EXAMPLES / "seed_004_digits.py"
    subprocess.run([sys.executable, script, tmp_path], check=True, capture_output=True)
    assert len(list(tmp_path.glob("*.png"))) == 12
