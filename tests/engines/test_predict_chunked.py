"""Answers for files in parts: those for the whole table in memory."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, parquet
from typer.testing import CliRunner

from branchwise import (
    BranchwiseError,
    DataError,
    ID3Classifier,
    ParameterError,
    fit_tree,
)
from branchwise.cli.main import app
from branchwise.files import dataset as part_files
from branchwise.files.dataset import StreamedTable
from branchwise.files.read_table import read_table
from branchwise.predict import predict_rows
from branchwise.recipe import C45, CART, ID3


def rows_of(n=90, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "zip": rng.choice(["007", "7", "08", None], n),
            "x": np.round(rng.normal(size=n), 1),
            "sunny": rng.choice([True, False], n),
            "kind": rng.choice(["a", 'b"', "c,d", "e\nf"], n),
            "n": rng.integers(0, 4, n),
        }
    )
    table.loc[rng.random(n) < 0.1, "x"] = np.nan
    table["y"] = np.where((table["x"] > 0) ^ table["sunny"], "p", "n")
    return table


RECIPES = {
    "id3": ID3,
    "divided": C45,
    "surrogates": replace(CART, missing="surrogate"),
    "leaf": replace(ID3, max_depth=0),
    "numbers": replace(CART, criterion="variance", max_depth=4),
}


@pytest.fixture
def files(tmp_path):
    table = rows_of()
    table.to_csv(tmp_path / "data.csv", index=False)
    table.to_parquet(tmp_path / "data.parquet", row_group_size=20)
    feather.write_feather(table, tmp_path / "data.feather", chunksize=20)
    return tmp_path


def fitted(name):
    table = rows_of()
    target = table["n"] if name == "numbers" else table["y"]
    return fit_tree(table.drop(columns=["y", "n"]), target, RECIPES[name])


def joined(batches):
    batches = list(batches)
    return {n: np.concatenate([b[n] for b in batches]) for n in batches[0]}


@pytest.mark.parametrize("form", ["csv", "parquet", "feather"])
@pytest.mark.parametrize("name", RECIPES)
def test_answers_are_those_for_the_whole_table(name, form, files, monkeypatch):
    monkeypatch.setattr(part_files, "BLOCK_BYTES", 300)
    model, rows = fitted(name), rows_of()
    source = StreamedTable((str(files / f"data.{form}"),), chunk_rows=17)
    found = joined(predict_rows(model, source, what=["classes", "leaves"]))
    assert list(found) == ["prediction", "leaf"]
    assert np.array_equal(found["prediction"], model.predict(rows))
    assert np.array_equal(found["leaf"], model.apply(rows))
    if name == "numbers":
        with pytest.raises(ParameterError, match="needs a tree that predicts classes"):
            predict_rows(model, source, what="probabilities")
        return
    shares = joined(predict_rows(model, source, what="probabilities"))
    assert list(shares) == ["probability of n", "probability of p"]
    expected = model.predict_proba(rows)
    assert np.array_equal(np.column_stack(list(shares.values())), expected)


@pytest.mark.parametrize("form", ["csv", "tsv", "json", "parquet", "arrow", "feather"])
@pytest.mark.parametrize("keep", [False, True])
def test_files_are_written_part_by_part(form, keep, files):
    model = fitted("id3")
    path = files / f"answers.{form}"
    source = StreamedTable((str(files / "data.parquet"),), chunk_rows=17)
    written = predict_rows(
        model, source, ["classes", "probabilities"], keep=keep, output=path
    )
    assert written == 90
    if form == "json":
        table = pd.DataFrame(json.loads(path.read_text(encoding="utf-8")))
    else:
        table = read_table(path, missing=[], text_columns=["zip"] if keep else ())
        table = table.to_pandas()
    kept = list(rows_of()) if keep else []
    chances = ["probability of n", "probability of p"]
    assert list(table) == [*kept, "prediction", *chances]
    assert np.array_equal(table["prediction"], model.predict(rows_of()))
    assert np.array_equal(table[chances], model.predict_proba(rows_of()))
    if keep and form in ("parquet", "arrow", "feather"):
        expected = pd.read_parquet(files / "data.parquet")
        pd.testing.assert_frame_equal(
            table[kept], expected, check_dtype=False, check_categorical=False
        )


def test_columns_are_kept_as_text_has_them(files):
    batch = joined(predict_rows(fitted("id3"), files / "data.csv", keep=True))
    assert batch["zip"][:40].tolist() == rows_of()["zip"].fillna("")[:40].tolist()
    assert batch["kind"].tolist() == rows_of()["kind"].tolist()
    assert set(batch["sunny"]) == {"True", "False"}
    typed = joined(predict_rows(fitted("id3"), files / "data.parquet", keep=True))
    assert typed["n"].dtype == np.int64
    assert typed["sunny"].tolist() == rows_of()["sunny"].tolist()


def test_columns_may_stand_in_another_order_in_every_file(files):
    rows_of(seed=1)[rows_of().columns[::-1]].to_parquet(files / "data2.parquet")
    model = fitted("id3")
    whole = pd.concat([rows_of(), rows_of(seed=1)], ignore_index=True)
    path = files / "out.csv"
    assert predict_rows(model, f"{files}/data*.parquet", output=path, keep=True) == 180
    table = pd.read_csv(path, dtype={"zip": str})
    expected = whole.assign(prediction=model.predict(whole))
    pd.testing.assert_frame_equal(table, expected, check_dtype=False)


def test_a_table_without_rows(files):
    model = fitted("id3")
    rows_of().iloc[:0].to_parquet(files / "none.parquet")
    (files / "none.csv").write_text("zip,x,sunny,kind\n", encoding="utf-8")
    for source in ("none.csv", "none.parquet"):
        for form in ("csv", "json", "parquet", "arrow"):
            path = files / f"out.{form}"
            assert (
                predict_rows(model, files / source, output=path, keep=form == "csv")
                == 0
            )
        assert json.loads((files / "out.json").read_text(encoding="utf-8")) == []
        kept = (files / "out.csv").read_text(encoding="utf-8").strip().split(",")
        assert kept[:4] == ["zip", "x", "sunny", "kind"]
        assert parquet.read_schema(files / "out.parquet").types == [pa.string()]


def test_models_without_names_take_columns_in_their_order(files):
    model = fit_tree(rows_of()[["x"]].to_numpy(), rows_of()["y"])
    path = files / "one.csv"
    rows_of()[["x"]].to_csv(path, index=False)
    found = joined(predict_rows(model, path))["prediction"]
    assert np.array_equal(found, model.predict(rows_of()[["x"]].to_numpy()))
    with pytest.raises(DataError, match="a table of 1 columns without names"):
        predict_rows(model, files / "data.csv")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"zip": None}, "lacks the column 'zip' that the tree was fitted with"),
        ({"x": ["a"] * 90}, r"Column 'x' must hold numbers, but line 2 of"),
        ({"sunny": ["maybe"] * 90}, r"Column 'sunny' must hold true or false"),
    ],
)
def test_columns_that_are_not_as_they_were_learnt(change, complaint, files):
    table = rows_of()
    for name, cells in change.items():
        table = table.drop(columns=name) if cells is None else table.assign(**change)
    path = files / "other.csv"
    table.to_csv(path, index=False)
    with pytest.raises(DataError, match=complaint):
        list(predict_rows(fitted("id3"), path))


def test_an_unseen_value_is_told_with_its_line(files):
    recipe = replace(ID3, unseen="error")
    model = fit_tree(rows_of()[["kind"]], rows_of()["y"], recipe)
    path = files / "other.csv"
    path.write_text("kind\na\na\nz\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"'z' in row 0.*\(Row 0 is line 4 of"):
        list(predict_rows(model, StreamedTable((str(path),), chunk_rows=2)))


def test_outputs_that_cannot_be(files):
    model = fitted("id3")
    with pytest.raises(ParameterError, match=r"output must be a file .* '.parquet'"):
        predict_rows(model, files / "data.csv", output=files / "out.ods")
    with pytest.raises(ParameterError, match="what must be one or more of 'classes'"):
        predict_rows(model, files / "data.csv", what="class")
    rows_of().assign(prediction="x").to_csv(files / "data.csv", index=False)
    with pytest.raises(DataError, match="two columns 'prediction'"):
        predict_rows(model, files / "data.csv", keep=True)


def test_kept_columns_of_types_that_do_not_go_together(files):
    for number, cells in enumerate(([1, 2], ["a", "b"])):
        table = pa.table({"x": [1.5, 2.5], "note": cells})
        parquet.write_table(table, files / f"note{number}.parquet")
    model = fit_tree(rows_of()[["x"]], rows_of()["y"])
    path = files / "out.parquet"
    with pytest.raises(DataError, match="'note' is of type int64 in some files and"):
        predict_rows(model, f"{files}/note*.parquet", output=path, keep=True)
    assert not path.exists()
    assert (
        predict_rows(
            model, f"{files}/note*.parquet", output=files / "out.csv", keep=True
        )
        == 4
    )


@pytest.mark.parametrize("form", ["csv", "json", "parquet", "arrow"])
def test_an_interruption_leaves_the_old_file(form, files, monkeypatch):
    model = fitted("id3")
    path = files / f"out.{form}"
    path.write_bytes(b"old")
    calls = []
    answer = type(model).predict

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) > 2:
            raise KeyboardInterrupt
        return answer(*arguments)

    monkeypatch.setattr(type(model), "predict", interrupted)
    source = StreamedTable((str(files / "data.parquet"),), chunk_rows=17)
    before = sorted(files.iterdir())
    with pytest.raises(KeyboardInterrupt):
        predict_rows(model, source, output=path)
    assert path.read_bytes() == b"old"
    assert sorted(files.iterdir()) == before


# ---- the command line -------------------------------------------------------------


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result


@pytest.mark.parametrize("source", ["csv", "parquet"])
@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
@pytest.mark.parametrize("options", [[], ["--proba", "--keep"]])
def test_the_command_line_answers_alike_with_both_engines(source, form, options, files):
    model = files / "model.json"
    fitted("id3").save(model)
    found = []
    for engine in ("memory", "chunked"):
        out = files / f"{engine}.{form}"
        table = files / f"data.{source}"
        run("predict", model, table, "-o", out, f"--engine={engine}", *options)
        found.append(out)
    if form == "parquet":
        first, second = map(parquet.read_table, found)
        assert first.equals(second)
    else:
        assert found[0].read_bytes() == found[1].read_bytes()


def test_patterns_and_folders_are_read_in_parts(files):
    fitted("id3").save(files / "model.json")
    (files / "new").mkdir()
    for number in range(2):
        rows_of(30, number).to_parquet(files / "new" / f"{number}.parquet")
    (files / "new" / "_SUCCESS").touch()
    expected = fitted("id3").predict(pd.concat([rows_of(30, 0), rows_of(30, 1)]))
    for source in (files / "new", files / "new" / "*.parquet"):
        out = files / "out.feather"
        result = run("predict", files / "model.json", source, "-o", out)
        assert "60 rows written to" in result.stderr
        assert np.array_equal(feather.read_table(out)["prediction"], expected)
        printed = run("predict", files / "model.json", source).stdout.split()
        assert printed == ["prediction", *expected]


def test_answers_do_not_write_over_the_rows(files):
    fitted("id3").save(files / "model.json")
    (files / "new").mkdir()
    rows = files / "new" / "0.parquet"
    rows_of(30, 0).to_parquet(rows)
    before = rows.read_bytes()
    with pytest.raises(ParameterError, match=r"output would write over .*0\.parquet"):
        predict_rows(fitted("id3"), files / "new", output=rows)
    arguments = ["predict", str(files / "model.json"), str(files / "new"), "-o", rows]
    done = CliRunner().invoke(app, [str(word) for word in arguments])
    assert done.exit_code == 2
    assert "-o would write over" in done.output
    assert rows.read_bytes() == before


def test_an_estimator_answers_as_its_model(files):
    rows = rows_of(30, 0)
    rows.to_parquet(files / "rows.parquet")
    estimator = ID3Classifier().fit(rows, rows.columns[-1])
    (batch,) = predict_rows(estimator, files / "rows.parquet")
    (same,) = predict_rows(estimator.model_, files / "rows.parquet")
    assert batch["prediction"].tolist() == same["prediction"].tolist()
    with pytest.raises(ParameterError, match=r"model must be what fit_tree .*Got str"):
        predict_rows("model.json", files / "rows.parquet")


def test_tables_in_memory_get_the_same_columns(files):
    model, rows = fitted("id3"), rows_of()
    every = ["classes", "probabilities", "leaves"]
    (batch,) = predict_rows(model, files / "data.parquet", every)
    found = predict_rows(model, rows, every)
    assert list(found) == list(batch)
    assert all(np.array_equal(found[name], batch[name]) for name in batch)
    found = predict_rows(model, rows, keep=["kind", "x"])
    assert list(found) == ["kind", "x", "prediction"]
    assert found["kind"].tolist() == rows["kind"].tolist()
    assert np.array_equal(found["x"], rows["x"], equal_nan=True)
    path = files / "out.parquet"
    assert predict_rows(model, rows, keep=["kind"], output=path) == len(rows)
    assert read_table(path).column_names == ["kind", "prediction"]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"verify": False}, "verify has no effect unless source is a SqlTable"),
        ({"as_query": True}, "as_query has no effect unless source is a SqlTable"),
        ({"escape_formulas": True}, "escape_formulas has no effect without an output"),
        ({"keep": ["zzz"]}, "no column 'zzz'"),
    ],
)
def test_parameters_without_effect(options, complaint, files):
    for source in (files / "data.csv", rows_of()):
        with pytest.raises(BranchwiseError, match=complaint):
            predict_rows(fitted("id3"), source, **options)
