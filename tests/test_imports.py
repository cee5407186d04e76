"""Data flows one way: which module may import which, read from the source."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import branchwise

ROOT = Path(branchwise.__file__).parent

#: From left to right; a module imports only from further left, or from its own
#: group where that is a folder of parts (table, engines, cli).
LAYERS: list[set[str]] = [
    {"errors", "files", "forks", "plain_text"},
    {"arrays", "extension", "threads", "narrow"},
    {"datasets"},
    {"table"},
    {"counts", "partitions", "shares"},
    {"findings"},
    {"ties"},
    {"missing", "criteria"},
    {"moments"},
    {"splits", "recipes"},
    {"significance"},
    {"intervals"},
    {"cuts", "groups", "branches"},
    {"search", "agreement"},
    {"deciding"},
    {"tree"},
    {"sanity"},
    {"builder", "words"},
    {"levels", "grafts"},
    {"prune"},
    {"kernels", "replay"},
    {"engines"},
    {"grow"},
    {"predict", "importance"},
    {"document"},
    {"rules", "surrogates"},
    {"ruleset", "covering"},
    {"generalise"},
    {"selection"},
    {"ruletable"},
    {"rulelist"},
    {"view"},
    {"render", "persist", "export", "explain"},
    {"in_database"},
    {"regrowth"},
    {"training"},
    {"elsewhere"},
    {"places"},
    {"validation"},
    {"pruning"},
    {"steps"},
    {"answering"},
    {"reading", "showing"},
    {"model"},
    {"far", "named", "spark"},
    {"fitting"},
    {"estimators"},
    {"evaluation"},
    {"figures"},
    {"search_plots"},
    {"plot"},
    {"report"},
    {"cli"},
]
FOLDERS = {
    "table",
    "engines",
    "cli",
    "kernels",
    "render",
    "datasets",
    "prune",
    "estimators",
    "evaluation",
    "export",
    "steps",
    "explain",
    "report",
}
#: The same within the table: a table as the user has it becomes a schema.
TABLE_LAYERS: list[set[str]] = [
    {"exact"},
    {
        "schema",
        "weights",
        "arrow",
        "make",
        "text",
        "reading",
        "progress",
        "interrupts",
        "memory",
        "pages",
        "row_ends",
        "sheet_size",
        "xls_size",
        "stored_file",
    },
    {"contents"},
    {"target", "encodings", "typed", "store", "write"},
    {"raw", "parsing"},
    {"records", "cells"},
    {"rewritten"},
    {"objects", "delimited", "arff", "c45_files", "parquet", "workbook", "database"},
    {"forms", "vectors"},
    {"frames", "read"},
    {"encoded", "part_files"},
    {"streamed"},
    {"choices", "matching", "rows", "values"},
    {"encode", "labels", "bins"},
    {"recognise"},
]

#: Who may import what from outside; nobody imports anything else.
LEARNING = {"sklearn", "scipy", "joblib"}
FRAMES = {"pandas", "polars", "pyarrow", "narwhals"}
SCREEN = {"typer", "rich", "click", "matplotlib"}
ELSEWHERE = {
    "dask",
    "distributed",
    "duckdb",
    "jpmml_evaluator",
    "onnx",
    "onnxruntime",
    "psycopg",
    "pyspark",
    "python_calamine",
}
ALLOWED_OUTSIDE = {
    "sklearn": {
        "estimators",
        "cli.evaluate",
        "evaluation",
        "report.curves",
        "report.reproduce",
    },
    "scipy": {"estimators", "evaluation"},
    "typer": {"cli"},
    "rich": {"cli"},
    "narwhals": {"table.frames", "table.make", "table.vectors"},
    "pyarrow": {"table"},
    "duckdb": {"engines.sql_drivers", "export.sql_runners", "table.database"},
    "dask": {"engines.dask_crew", "engines.dask_tables"},
    "distributed": {"engines.dask_crew"},
    "python_calamine": {"table.workbook"},
    "matplotlib": {"plot", "figures"},
    "onnx": {
        "export.onnx",
        "export.onnx_graph",
        "export.onnx_walk",
        "export.onnx_divided",
        "export.onnx_ensemble",
    },
    "onnxruntime": {"export.onnx"},
    "jpmml_evaluator": {"export.pmml_driver"},
    "pandas": {"datasets", "engines.dask_tables", "export.pmml_driver"},
    "psycopg": {"engines.sql_drivers", "export.sql_runners"},
    "pyspark": {
        "engines.spark_session",
        "engines.spark_workers",
        "export.sql_runners",
    },
}


def module_name(path: Path) -> str:
    """Return the name without the package: ``table.schema``, ``tree``, ``""``."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}
INNER = sorted(name for name in MODULES if name not in ("", "__main__"))


def imports(path: Path) -> Iterator[str]:
    """Yield what a file imports, at its top or anywhere else."""
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


def inner_imports(module: str) -> set[str]:
    """Return the modules of branchwise that one of them imports."""
    found = set()
    for name in imports(MODULES[module]):
        if name == "branchwise" or name.startswith("branchwise."):
            found.add(name.removeprefix("branchwise").removeprefix("."))
    return found


def outer_imports(module: str) -> set[str]:
    """Return the other packages that a module imports."""
    found = {name.split(".")[0] for name in imports(MODULES[module])}
    return found - {"branchwise"} - set(sys.stdlib_module_names)


def layer(part: str, layers: list[set[str]]) -> int:
    (index,) = [index for index, group in enumerate(layers) if part in group]
    return index


def test_imports_are_found_wherever_they_are(tmp_path):
    source = tmp_path / "module.py"
    source.write_text(
        "import sklearn.tree as t\n"
        "from branchwise import errors, fit_tree\n"
        "def late():\n"
        "    from branchwise.table import frames\n"
        "    from branchwise.tree import Tree\n"
        "if late:\n"
        "    import pandas\n",
        encoding="utf-8",
    )
    assert sorted(imports(source)) == [
        "branchwise",
        "branchwise.errors",
        "branchwise.table.frames",
        "branchwise.tree",
        "pandas",
        "sklearn.tree",
    ]


def test_every_module_has_a_place():
    tops = {name.split(".")[0] for name in INNER}
    assert tops == set.union(*LAYERS)
    in_table = {name.split(".")[1] for name in INNER if name.startswith("table.")}
    assert in_table == set.union(*TABLE_LAYERS)


@pytest.mark.parametrize("module", INNER)
def test_modules_import_only_from_their_left(module):
    top = module.split(".")[0]
    for imported in inner_imports(module):
        other = imported.split(".")[0]
        if other == "":
            # The version is the one thing to know about the package as a whole.
            assert module in ("cli.main", "report.reproduce")
        elif other == top:
            assert top in FOLDERS, f"{module} imports {imported}"
        else:
            assert layer(other, LAYERS) < layer(top, LAYERS), (
                f"{module} imports {imported}"
            )


@pytest.mark.parametrize("module", [name for name in INNER if "table." in name])
def test_the_table_has_an_order_of_its_own(module):
    part = module.split(".")[1]
    for imported in inner_imports(module):
        if imported.startswith("table."):
            other = imported.split(".")[1]
            assert layer(other, TABLE_LAYERS) < layer(part, TABLE_LAYERS), (
                f"{module} imports {imported}"
            )


def test_nothing_imports_in_a_circle():
    """Also not within a folder."""
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
    known = {"numpy"} | LEARNING | FRAMES | SCREEN | ELSEWHERE
    outside = outer_imports(module)
    assert outside <= known, f"{module} imports {outside - known}"
    for package in outside - {"numpy"}:
        places = ALLOWED_OUTSIDE.get(package, set())
        assert any(module == p or module.startswith(f"{p}.") for p in places), (
            f"{module} imports {package}"
        )


def reaches(module: str) -> set[str]:
    """Return all modules that importing one of them brings along."""
    found: set[str] = set()
    open_ = [module]
    while open_:
        for name in inner_imports(open_.pop()) - found:
            found.add(name)
            if name in INNER:
                open_.append(name)
    return found


def test_criteria_never_see_rows():
    assert inner_imports("criteria") == {"counts", "errors"}
    assert not any(name.startswith("table") for name in reaches("criteria"))


@pytest.mark.parametrize("module", [n for n in INNER if n.startswith("engines")])
def test_engines_never_see_criteria(module):
    assert "criteria" not in inner_imports(module)
    assert "recipes" not in inner_imports(module)


def test_the_tree_never_sees_data():
    seen = inner_imports("tree")
    assert not any(name.startswith(("engines", "kernels", "grow")) for name in seen)
    assert {name for name in seen if name.startswith("table")} <= {"table.schema"}


VIEWS_AND_FILES = ("render", "persist", "document", "rules")


@pytest.mark.parametrize(
    "module", [n for n in INNER if n.split(".")[0] in VIEWS_AND_FILES]
)
def test_views_and_files_see_only_schema_and_tree(module):
    allowed = {"errors", "forks", "intervals", "table.schema", "tree", "words"}
    if module.startswith("render."):
        allowed |= {"missing"}
        allowed |= {name for name in INNER if name.startswith("render.")}
    if module == "document":
        allowed = {"errors", "missing", "recipes", "sanity", "table.schema", "tree"}
    if module == "persist":
        allowed = {"document", "errors", "files", "plain_text"}
        allowed |= {"recipes", "table.schema", "tree"}
    if module == "render.html":
        allowed = {"files", "plain_text", "tree", "view", "words"}
        allowed |= {"render.colours", "render.policy"}
    assert inner_imports(module) <= allowed


@pytest.mark.parametrize(
    "module", ["errors", "files", "forks", "plain_text", "table.schema", "counts"]
)
def test_the_ground_floor_stands_on_nothing(module):
    assert inner_imports(module) <= {"forks", "plain_text"}


def test_the_package_itself_only_gives_names():
    assert inner_imports("") <= {
        "datasets",
        "errors",
        "estimators",
        "findings",
        "fitting",
        "model",
        "recipes",
        "table.encoded",
        "table.read",
    }
    assert outer_imports("") == set()


def test_public_names_are_there():
    for name in branchwise.__all__:
        assert getattr(branchwise, name) is not None
    assert sorted(branchwise.__all__) == branchwise.__all__
    with pytest.raises(AttributeError, match="has no attribute 'C50Classifier'"):
        branchwise.C50Classifier  # noqa: B018
