"""Data flows one way: which folder may import which, read from the source."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import branchwise

ROOT = Path(branchwise.__file__).parent

#: From bottom to top. A module imports from lower rungs and from its own folder; on a
#: rung of several names the later ones may use the earlier ones.
RUNGS: list[list[str]] = [
    ["errors", "threads", "native"],
    ["data", "stats", "datasets"],
    ["files"],
    ["recipe", "tree"],
    ["text"],
    ["grow"],
    ["prune"],
    ["engines"],
    ["train", "model_file"],
    ["render", "rules", "shap", "explain", "steps", "export"],
    ["model"],
    ["fit", "predict", "ensemble"],
    ["estimators"],
    ["evaluation"],
    ["plot", "report", "studio"],
    ["cli"],
]
ORDER = [name for rung in RUNGS for name in rung]

#: Packages from outside, and the modules that may import each; numpy is for all.
OUTSIDE = {
    "sklearn": {"estimators", "evaluation", "report.testing", "report.page", "cli"},
    "scipy": {"estimators", "stats", "ensemble.reading.proximities"},
    "typer": {"cli"},
    "rich": {"cli"},
    "jinja2": {"text.as_html"},
    "markupsafe": {"text.as_html", "text.mathml"},
    "narwhals": {"data"},
    "pyarrow": {"data", "files", "engines.chunked", "engines.spark"},
    "duckdb": {"files.database"},
    "psycopg": {"engines.sql", "export.sql"},
    "dask": {"engines.dask"},
    "distributed": {"engines.dask"},
    "xlsxwriter": {"export.excel.sheets", "files.write_workbook"},
    "pandas": {"engines.dask", "datasets"},
    "pyspark": {"engines.spark", "export.sql"},
    "python_calamine": {"files.workbook"},
    "pyreadstat": {"files.record_files"},
    "matplotlib": {"plot", "evaluation.plots"},
    "onnx": {"export"},
    "onnxruntime": {"export"},
    "starlette": {"studio.server"},
    "uvicorn": {"studio.server"},
    "anyio": {"studio.server"},
    "anywidget": {"studio.widget"},
    "traitlets": {"studio.widget"},
}
#: Modules that are imported on first use, by the names that others import.
LAZY = {
    f"branchwise.data.arrow.{name}": "pyarrow"
    for name in ("arrow_csv", "compute", "pa", "parquet")
}


def module_name(path: Path) -> str:
    """Return the name without the package: ``data.table_schema``, ``model``, ``""``."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}
INNER = sorted(name for name in MODULES if name not in ("", "__main__"))


@cache
def imports(path: Path) -> tuple[str, ...]:
    """Return what a file imports, at its top or anywhere else."""
    return tuple(names_imported(path))


def names_imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            assert node.module is not None
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                inner = full.removeprefix("branchwise.")
                yield full if inner in MODULES else node.module
                if full in LAZY:
                    yield LAZY[full]


@cache
def inner_imports(module: str) -> frozenset[str]:
    """Return the modules of branchwise that one of them imports."""
    found = {
        name.removeprefix("branchwise").removeprefix(".")
        for name in imports(MODULES[module])
        if name == "branchwise" or name.startswith("branchwise.")
    }
    return frozenset(found)


def outer_imports(module: str) -> set[str]:
    """Return the other packages that a module imports."""
    found = {name.split(".")[0] for name in imports(MODULES[module])}
    return found - {"branchwise"} - set(sys.stdlib_module_names)


@cache
def reaches(module: str) -> frozenset[str]:
    """Return all modules that one of them imports, directly or through others."""
    found: set[str] = set()
    waiting = [module]
    while waiting:
        for name in inner_imports(waiting.pop()) - found:
            found.add(name)
            if name in INNER:
                waiting.append(name)
    return frozenset(found)


def folder(module: str) -> str:
    return module.split(".", maxsplit=1)[0]


def test_imports_are_found_wherever_they_are(tmp_path):
    source = tmp_path / "module.py"
    source.write_text(
        "import sklearn.tree as t\n"
        "from branchwise import errors, fit_tree\n"
        "def late():\n"
        "    from branchwise.data import frames\n"
        "    from branchwise.tree.tree import Tree\n"
        "if late:\n"
        "    import pandas\n",
        encoding="utf-8",
    )
    assert sorted(imports(source)) == [
        "branchwise",
        "branchwise.data.frames",
        "branchwise.errors",
        "branchwise.tree.tree",
        "pandas",
        "sklearn.tree",
    ]


def test_every_folder_has_a_rung():
    assert {folder(name) for name in INNER} == set(ORDER)
    assert len(RUNGS) <= 16


@pytest.mark.parametrize("module", INNER)
def test_modules_import_from_lower_rungs(module):
    for imported in inner_imports(module):
        if imported == "":
            # The version, and the estimator of a model, which is above it.
            assert module in ("cli.main", "report.page", "model", "ensemble.ensemble")
        elif folder(imported) != folder(module):
            below = ORDER.index(folder(imported)) < ORDER.index(folder(module))
            assert below, f"{module} imports {imported}"


def test_nothing_imports_in_a_circle():
    done: set[str] = set()
    remaining = {name: inner_imports(name) & set(INNER) for name in INNER}
    while remaining:
        free = [name for name, needed in remaining.items() if needed <= done]
        assert free, f"a circle among {sorted(remaining)}"
        done.update(free)
        for name in free:
            del remaining[name]


@pytest.mark.parametrize("module", sorted(MODULES))
def test_other_packages_are_imported_where_they_belong(module):
    for package in outer_imports(module) - {"numpy"}:
        allowed = OUTSIDE.get(package, set())
        assert any(module == a or module.startswith(f"{a}.") for a in allowed), (
            f"{module} imports {package}"
        )


def never_sees(module: str, *hidden: str) -> None:
    seen = {n for n in reaches(module) if n in hidden or folder(n) in hidden}
    assert not seen, f"{module} reaches {sorted(seen)}"


def test_criteria_never_see_rows():
    never_sees("grow.criteria", "engines", "files", "data.frames", "data.encode")


@pytest.mark.parametrize("module", [n for n in INNER if folder(n) == "engines"])
def test_engines_never_see_criteria(module):
    # What is grown below a node where its rows are is handed in as a function.
    never_sees(module, "grow.criteria", "grow.choose", "grow.search")


@pytest.mark.parametrize("module", [n for n in INNER if folder(n) == "tree"])
def test_the_tree_never_sees_training_rows(module):
    never_sees(module, "engines", "grow", "files", "data.frames", "data.encode")


@pytest.mark.parametrize(
    "module", [n for n in INNER if folder(n) in ("render", "export", "model_file")]
)
def test_views_exports_and_files_see_only_schema_and_tree(module):
    never_sees(module, "engines", "train")


def test_the_package_itself_only_gives_names():
    assert outer_imports("") == set()


def test_public_names_are_there():
    for name in branchwise.__all__:
        assert getattr(branchwise, name) is not None
    assert sorted(branchwise.__all__) == branchwise.__all__
    with pytest.raises(AttributeError, match="has no attribute 'C50Classifier'"):
        branchwise.C50Classifier  # noqa: B018
