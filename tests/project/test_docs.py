"""What the documents show is what happens."""

from __future__ import annotations

import doctest
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import branchwise
import branchwise.datasets
import branchwise.export
from branchwise import model_file as document
from branchwise.cli.main import app
from branchwise.recipe import ID3
from branchwise.recipe.parameters import (
    ALGORITHMS,
    ALPHA_RULES,
    BRANCHINGS,
    POLICIES,
    PROBABILITIES,
    PRUNINGS,
)
from branchwise.tree.tree import ARRAYS, OPTIONAL_ARRAYS

ROOT = Path(__file__).parents[2]


def test_the_tour_of_the_readme(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tried = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert tried.failed == 0
    assert tried.attempted >= 8


#: Pages whose examples are run, and the fewest that each must have.
PAGES = {
    "pruning.md": 15,
    "rules.md": 20,
    "read_forests.md": 20,
    "rule_classifier.md": 8,
    "boosting.md": 8,
    "explain.md": 15,
    "shap.md": 12,
    "export.md": 15,
    "export_onnx.md": 8,
    "export_pmml.md": 4,
    "viewer.md": 6,
    "report.md": 12,
    "export_sql.md": 8,
    "export_excel.md": 8,
    "evaluate.md": 8,
    "tune.md": 15,
    "scale_sql.md": 15,
    "scale_dask.md": 20,
    "scale.md": 15,
    "studio.md": 15,
}


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_a_page(page, tmp_path, monkeypatch):
    if page == "export_onnx.md":
        pytest.importorskip("onnxruntime")
    if page == "scale_sql.md":
        pytest.importorskip("duckdb")
    if page == "scale_dask.md":
        pytest.importorskip("distributed")
    monkeypatch.chdir(tmp_path)
    tried = doctest.testfile(str(ROOT / "docs" / page), module_relative=False)
    assert tried.failed == 0
    assert tried.attempted >= PAGES[page]


@pytest.mark.parametrize(
    ("page", "script"),
    [
        ("viewer.md", "render/assets/keys.js"),
        ("studio.md", "studio/assets/keyboard.js"),
    ],
)
def test_the_keys_of_a_page(page, script):
    source = (ROOT / "src" / "branchwise" / script).read_text(encoding="utf-8")
    keys = source.partition("const KEYS = [")[2]
    helped = re.findall(r'\["(.*?)", "(.*?)"\]', keys.partition("];")[0])
    told = (ROOT / "docs" / page).read_text("utf-8").partition("# Keys\n")[2]
    table = re.findall(r"^\| `(.*?)` \| (.*?) \|$", told.partition("\n#")[0], re.M)
    assert table == helped
    assert len(helped) >= 10


def test_pictures_are_small():
    pictures = list((ROOT / "docs" / "images").iterdir())
    for picture in pictures:
        assert picture.stat().st_size < 150_000, picture.name
    assert sum(picture.stat().st_size for picture in pictures) < 2_500_000
    screens = {p.name for p in pictures if p.name.startswith("screen_")}
    shown = (ROOT / "docs" / "screenshots.md").read_text(encoding="utf-8")
    assert set(re.findall(r"images/(screen_\w+\.png)", shown)) == screens
    assert len(screens) == 24  # two pages, two tables, three widths, light and dark


#: How the programs of the page on exports are run, given the tree and themselves.
PROGRAMS = {
    "c": ("tree.c", "caller.c", ["cc", "-std=c99", "caller.c", "tree.c", "-lm"]),
    "javascript": ("tree.js", "caller.js", ["node", "caller.js"]),
    "py": ("tree.py", "caller.py", [sys.executable, "caller.py"]),
}


@pytest.mark.parametrize("language", PROGRAMS)
def test_programs_of_the_page_on_exports(language, tmp_path):
    text = (ROOT / "docs" / "export.md").read_text(encoding="utf-8")
    fences = rf"```{language}\n(.*?)```\n\n```text\n(.*?)```"
    ((program, output),) = re.findall(fences, text, re.DOTALL)
    tree, caller, command = PROGRAMS[language]
    if shutil.which(command[0]) is None:
        pytest.skip(f"there is no {command[0]} here")
    weather = branchwise.datasets.load("weather")
    model = branchwise.fit_tree(weather.X, weather.y)
    target = {"py": "python"}.get(language, language)
    (tmp_path / tree).write_bytes(branchwise.export.write(model, target))
    (tmp_path / caller).write_text(program, encoding="utf-8")
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    if language == "c":
        command = ["./a.out"]
        done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert done.stdout.decode() == output


def test_the_page_on_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = ROOT / "docs" / "files.md"
    tried = doctest.testfile(str(page), module_relative=False)
    assert tried.failed == 0
    assert tried.attempted >= 30
    # The commands are run on the files that the examples have made.
    blocks = re.findall(r"```console\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    shown = [part for block in blocks for part in re.split(r"^\$ ", block, flags=re.M)]
    commands = [part.rstrip("\n").partition("\n") for part in shown if part]
    assert len(commands) >= 4
    for command, _, wanted in commands:
        done = CliRunner().invoke(app, shlex.split(command)[1:])
        assert (done.stderr + done.stdout).rstrip("\n") == wanted, command


def test_the_page_for_users_of_other_programs(tmp_path, monkeypatch):
    """Every call is one of a session, and every name in bold is one of the page."""
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "coming_from.md").read_text(encoding="utf-8")
    calls = set(re.findall(r"`(session\.[^`]+)`", page))
    assert len(calls) >= 20
    rows = 12
    table = {
        "age": [20 + 5 * k for k in range(rows)] * 2,
        "purpose": ["car", "tv", "business"] * (2 * rows // 3),
        "default": ["yes"] * 5 + ["no"] * 7 + ["no"] * 9 + ["yes"] * 3,
    }
    for call in sorted(calls):
        session = branchwise.grow_by_hand(table, "default", ID3)
        session.split("/", "age", threshold=48)
        session.split("/0", "purpose")
        eval(call, {"session": session})
    assets = ROOT / "src" / "branchwise" / "studio" / "assets"
    shown = "\n".join(path.read_text("utf-8") for path in assets.glob("*.js"))
    for name in re.findall(r"\*\*(.+?)\*\*", page):
        assert name in shown, name


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "CONTRIBUTING.md",
        *sorted(p.name for p in (ROOT / "docs").glob("*.md")),
    ],
)
def test_links_lead_somewhere(page):
    path = ROOT / page if (ROOT / page).exists() else ROOT / "docs" / page
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (path.parent / target).exists(), target


def test_files_that_are_named_exist():
    """Stages are mapped to files; a file that moved must move there too."""
    text = (ROOT / "docs" / "how_it_works.md").read_text(encoding="utf-8")
    source = ROOT / "src" / "branchwise"
    known = {path.name for path in source.rglob("*.py")}
    named = set(re.findall(r"`(?:[a-z]+/)*([a-z_]+\.py)`", text))
    assert named
    assert {name for name in named if not name.startswith("test_")} <= known


def test_every_module_is_on_the_map():
    text = (ROOT / "docs" / "how_it_works.md").read_text(encoding="utf-8")
    source = ROOT / "src" / "branchwise"
    for path in source.glob("*.py"):
        if not path.name.startswith("__"):
            assert path.name in text, path.name


def test_the_version_is_the_same_everywhere():
    for name in ("pyproject.toml", "CITATION.cff", "CHANGELOG.md"):
        assert branchwise.__version__ in (ROOT / name).read_text(encoding="utf-8"), name


def test_the_model_file_is_documented_in_full():
    """Every array, policy, recipe field and algorithm is on the page."""
    page = (ROOT / "docs" / "model_file.md").read_text(encoding="utf-8")
    arrays = [spec.key for group in (ARRAYS, *OPTIONAL_ARRAYS) for spec in group]
    for name in [*arrays, *document.RECIPE_FIELDS]:
        assert f"`{name}`" in page, name
    choices = [*POLICIES, *ALGORITHMS, *BRANCHINGS, *PRUNINGS, *PROBABILITIES]
    for name in [*choices, *ALPHA_RULES]:
        assert f'`"{name}"`' in page, name
