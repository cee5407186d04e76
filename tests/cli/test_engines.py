"""``branchwise fit`` from files in parts: the same model file, and clear refusals."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from branchwise import DataError, datasets, fit_tree
from branchwise.engines import base as places
from command_line import run

CAR = str(datasets.path("car"))


@pytest.fixture
def parts(tmp_path: Path) -> str:
    """Write the car table in two Parquet files, and return a pattern for them."""
    table = pd.read_csv(CAR, dtype=str).sample(frac=1, random_state=0)
    table.iloc[:1000].to_parquet(tmp_path / "a.parquet")
    table.iloc[1000:].to_parquet(tmp_path / "b.parquet")
    return str(tmp_path / "*.parquet")


OPTIONS = [
    [],
    ["--algorithm", "c4.5", "--class-weight", "balanced"],
    ["--algorithm", "cart", "--priors", "acc=1,good=1,unacc=2,vgood=1"],
    ["--costs", "unacc:acc=5", "--ignore", "doors"],
    ["--categories", "doors=5more,4,3,2", "--max-depth", "3"],
]


@pytest.mark.parametrize("options", OPTIONS, ids=" ".join)
def test_the_model_file_is_the_same(options, parts, tmp_path):
    whole, pieces = tmp_path / "whole.json", tmp_path / "pieces.json"
    assert run("fit", CAR, "-t", "class", *options, "-o", whole)[0] == 0
    code, _, err = run("fit", parts, "-t", "class", *options, "-o", pieces)
    assert code == 0, err
    assert "by the engine chunked written to" in err
    assert pieces.read_bytes() == whole.read_bytes()


def test_several_files_are_one_table(parts, tmp_path):
    files = sorted(str(path) for path in tmp_path.glob("*.parquet"))
    models = [tmp_path / "pattern.json", tmp_path / "files.json"]
    assert run("fit", parts, "-t", "class", "-o", models[0])[0] == 0
    code, _, err = run("fit", *files, "-t", "class", "-o", models[1])
    assert code == 0
    assert f"{files[0]} and 1 more file by the engine chunked" in err
    assert models[0].read_bytes() == models[1].read_bytes()
    answers = [run("predict", models[1], *where)[1] for where in ([parts], files)]
    assert answers[0] == answers[1]
    assert len(answers[0].splitlines()) == 1729


def test_a_model_is_not_written_over_rows_of_a_pattern(parts, tmp_path):
    rows = tmp_path / "a.parquet"
    before = rows.read_bytes()
    for where in (parts, tmp_path):
        code, _, err = run("fit", where, "-t", "class", "-o", rows)
        assert code == 2
        assert "-o would write over" in err
    assert rows.read_bytes() == before


@pytest.mark.parametrize(
    ("engine", "files", "complaint"),
    [
        ("memory", ["a.parquet", "b.parquet"], "reads one file. Got 2 files. Leave"),
        ("memory", ["*.parquet"], "Got '*.parquet', which may be several."),
        ("sql", ["a.db", "b.db"], "one database. Got 'a.db', 'b.db'. Join"),
    ],
)
def test_several_files_are_not_for_every_engine(engine, files, complaint):
    code, _, err = run("fit", *files, "-t", "class", "--engine", engine)
    assert code == 2
    assert complaint in err


def test_validation_rows_may_be_files(parts, tmp_path):
    first, second = (str(tmp_path / name) for name in ("a.parquet", "b.parquet"))
    how = ["-t", "class", "--pruning", "reduced-error", "--validation", second]
    models = [tmp_path / "memory.json", tmp_path / "chunked.json"]
    assert run("fit", first, *how, "-o", models[0])[0] == 0
    assert run("fit", first, *how, "--engine", "chunked", "-o", models[1])[0] == 0
    assert models[0].read_bytes() == models[1].read_bytes()


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        ("-t clas", 1, "no column 'clas'. Did you mean 'class'?"),
        ("-t class --temporary-folder /no/such", 1, "temporary_folder cannot be used"),
        ("-t class --master local[2]", 2, "--master has no effect without"),
        (
            "-t class --validation-fraction 0.2 --pruning reduced-error",
            2,
            "validation_fraction sets rows aside by their contents",
        ),
        (
            "-t class -a cart --ccp-alpha best",
            2,
            "ccp_alpha='best' is chosen by cross-validation",
        ),
    ],
)
def test_what_cannot_be_done_is_refused(arguments, code, complaint, parts, tmp_path):
    model = tmp_path / "tree.json"
    got, _, err = run("fit", parts, *arguments.split(), "-o", model)
    assert got == code
    assert complaint in err
    assert not model.exists()


def test_options_of_engines_need_one():
    code, _, err = run("fit", CAR, "-t", "class", "--no-cache")
    assert code == 2
    assert "--no-cache has no effect without --engine chunked." in err
    _, _, err = run("fit", CAR, "-t", "class", "--max-exact", "5")
    assert "--max-exact has no effect on rows in memory." in err


@pytest.mark.parametrize("engine", ["dask", "spark"])
def test_an_engine_that_is_not_installed_is_told(engine, monkeypatch):
    monkeypatch.setattr(places, "find_spec", lambda _: None)
    code, _, err = run("fit", CAR, "-t", "class", "--engine", engine)
    assert code == 2
    assert f"pip install 'branchwise[{engine}]'" in err


def test_nan_is_missing_also_among_names(tmp_path):
    path = tmp_path / "nan.parquet"
    pq.write_table(
        pa.table(
            {"a": [1.5, float("nan"), None, 2.5] * 5, "y": ["p", "q", "q", "r"] * 5}
        ),
        path,
    )
    for engine in ("memory", "chunked"):
        how = ["-t", "y", "-a", "id3", "--categorical", "a", "--engine", engine]
        code, out, _ = run("fit", path, *how)
        assert code == 0
        assert out.splitlines() == [
            "a = 1.5: p (5)",
            "a = 2.5: r (5)",
            "a is missing: q (10)",
        ]


def test_numbers_cannot_be_told_where_columns_have_types(tmp_path):
    code, _, err = run(
        "fit", tmp_path / "t.db", "-t", "y", "--engine", "sql", "--numeric", "a"
    )
    assert code == 2
    assert "--numeric has no effect with --engine sql" in err


def test_an_address_is_no_file():
    with pytest.raises(DataError, match=r"is not a file\. Pass a table of a database"):
        fit_tree("postgresql://a@b/c", "y")
