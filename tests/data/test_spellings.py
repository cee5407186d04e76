"""Values that differ only in case or whitespace are found, and merged on request."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from branchwise import (
    DataError,
    EncodedTable,
    ID3Classifier,
    ModelFileError,
    RandomForestClassifier,
    fit_tree,
    load,
    predict_rows,
    read_table,
)
from branchwise.data.conventions.spellings import merged_spellings, spellings
from branchwise.engines.chunked import ChunkedTable
from branchwise.files.dataset import StreamedTable
from branchwise.files.options import Reading
from branchwise.recipe import ID3
from command_line import output, run


def merged(texts, known=()):
    return merged_spellings(pa.chunked_array([pa.array(texts)]), known).to_pylist()


def test_spellings_of_a_value():
    assert spellings(["Ja", " ja", "nein", "JA", 5, True]) == [["Ja", " ja", "JA"]]
    assert spellings(["a", "b"]) == []


def test_the_most_frequent_spelling_is_kept():
    assert merged(["JA", "ja ", " ja", "Ja", "Ja", None, "x"]) == [
        *["Ja"] * 5,
        None,
        "x",
    ]
    assert merged(["b", "B", "A", "a"]) == ["B", "B", "A", "A"]
    assert merged([" ", "x"]) == [" ", "x"]
    assert merged(["ja", "JA", "X"], ("Ja", "nein")) == ["Ja", "Ja", "X"]
    # A model that knows two spellings keeps both.
    assert merged(["ja", "JA", "jA"], ("ja", "JA")) == ["ja", "JA", "JA"]


@pytest.fixture
def answers(tmp_path):
    path = tmp_path / "answers.csv"
    rows = [("Ja", "good"), ("ja", "good"), ("ja", "Good"), ("nein", "bad")]
    path.write_text("paid,class\n" + "".join(f"{a},{b}\n" for a, b in rows * 3))
    return path


def test_they_are_noted_and_merged(answers, tmp_path):
    assert "--merge-case if 'Ja', 'ja' are one value" in output("schema", answers)
    fit = "fit", answers, "-t", "class", "-a", "id3", "-o", tmp_path / "model.json"
    err = run(*fit)[2]
    for name, values in (("paid", "'Ja', 'ja'"), ("class", "'Good', 'good'")):
        assert (
            f"values of column {name!r} differ only in case or spaces: {values}. "
            "--merge-case merges them." in err
        )
    assert "differ only" not in run(*fit, "--merge-case")[2]
    schema = json.loads((tmp_path / "model.json").read_text())["schema"]
    assert schema["classes"] == ["bad", "good"]
    assert schema["columns"][0]["categories"] == ["ja", "nein"]


def test_models_are_asked_with_the_spellings_that_they_know(answers, tmp_path):
    model, plain = tmp_path / "model.json", tmp_path / "plain.csv"
    plain.write_text("paid,class\n" + "ja,good\nja,good\nnein,bad\n" * 3)
    run("fit", plain, "-t", "class", "-a", "id3", "-o", model)
    _, out, err = run("evaluate", model, answers)
    assert "column 'paid' has 'Ja', which differ only in case or spaces from" in err
    assert "accuracy 0.7500" in out
    assert "accuracy 1.0000" in output("evaluate", model, answers, "--merge-case")


@pytest.fixture
def merging(answers, tmp_path):
    path = tmp_path / "merging.json"
    run("fit", answers, "-t", "class", "-a", "id3", "-o", path, "--merge-case")
    return path


def test_models_keep_that_spellings_are_merged(answers, merging, tmp_path):
    schema = json.loads(merging.read_text())["schema"]
    assert schema["merge_case"] is True
    model = load(merging)
    assert model.to_bytes() == merging.read_bytes()
    assert model.drop_unused().schema.merge_case
    new = tmp_path / "new.csv"
    new.write_text("paid,class\n JA,GOOD\nNEIN ,Bad\nnein,bad\n")
    _, out, err = run("evaluate", merging, new)
    assert "accuracy 1.0000" in out
    assert "differ only" not in err
    expected = ["good", "bad", "bad"]
    for engine in ("memory", "chunked"):
        _, out, err = run("predict", merging, new, "--engine", engine)
        assert out.split() == ["prediction", *expected]
        assert not err
    (batch,) = predict_rows(model, str(new))
    assert batch["prediction"].tolist() == expected
    assert output("explain", merging, "--set", "paid=NEIN") == output(
        "explain", merging, "--set", "paid=nein"
    )


def test_the_library_keeps_it_as_the_command_line_does(answers, merging, tmp_path):
    table = read_table(answers, merge_case=True)
    X, y = table.drop_columns(["class"]), table["class"]
    new = tmp_path / "new.csv"
    new.write_text("paid,class\n JA,GOOD\nNEIN ,Bad\nnein,bad\n")
    by_name = fit_tree(table, "class", ID3)
    assert by_name.to_bytes() == merging.read_bytes()
    for fitted in (ID3Classifier(), RandomForestClassifier(n_estimators=3)):
        model = fitted.fit(X, y).model_
        assert model.schema.merge_case
        model.save(tmp_path / "model.json")
        (batch,) = predict_rows(load(tmp_path / "model.json"), str(new))
        assert batch["prediction"].tolist() == ["good", "bad", "bad"]
    assert fit_tree(EncodedTable(X), y, ID3).schema.merge_case
    assert not fit_tree(read_table(answers), "class", ID3).schema.merge_case


def test_rows_to_prune_with_are_merged_into_the_training_values(answers, tmp_path):
    path, model = tmp_path / "other.csv", tmp_path / "model.json"
    path.write_text("paid,class\n" + "JA,GOOD\nNein,BAD\n" * 3)
    fit = "fit", answers, "-t", "class", "-a", "id3", "--pruning", "reduced-error"
    code, _, err = run(*fit, "--merge-case", "--validation", path, "-o", model)
    assert code == 0, err
    assert "2 leaves" in err


def test_model_files_are_checked_for_merged_spellings(merging):
    document = json.loads(merging.read_text())
    document["schema"]["merge_case"] = "yes"
    with pytest.raises(ModelFileError, match="'merge_case' of 'schema' must be true"):
        load(json.dumps(document).encode())


@pytest.mark.parametrize("rows", [2, 1000])
def test_rows_in_chunks_are_merged_as_in_memory(answers, merging, rows, tmp_path):
    reading = Reading(merge_case=True)
    table = StreamedTable((str(answers),), reading, chunk_rows=rows)
    model = fit_tree(ChunkedTable(table), "class", ID3)
    assert model.to_bytes() == merging.read_bytes()
    path = tmp_path / "chunked.json"
    fit = ("fit", answers, "-t", "class", "-a", "id3", "--merge-case")
    assert run(*fit, "--engine", "chunked", "-o", path)[0] == 0
    assert path.read_bytes() == merging.read_bytes()
    code, _, err = run(*fit, "--engine", "dask")
    assert code == 2
    assert "--merge-case has no effect with --engine dask: it is for files" in err


def test_rows_to_prune_with_are_merged_in_chunks(answers, tmp_path):
    other, model = tmp_path / "other.csv", tmp_path / "model.json"
    other.write_text("paid,class\n" + "JA,GOOD\nNein,BAD\n" * 3)
    fit = ("fit", answers, "-t", "class", "-a", "id3", "--pruning", "reduced-error")
    options = ("--merge-case", "--validation", other, "--engine", "chunked")
    code, _, err = run(*fit, *options, "-o", model)
    assert code == 0, err
    assert "2 leaves" in err


def test_streams_are_merged_only_into_known_values(answers):
    table = StreamedTable((str(answers),), Reading(merge_case=True))
    with pytest.raises(DataError, match="merge_case needs all rows at once"):
        table.names  # noqa: B018


def test_declared_values_stay(tmp_path):
    path = tmp_path / "a.arff"
    path.write_text("@relation r\n@attribute a {x,X}\n@data\nx\nX\n")
    assert read_table(path, merge_case=True)["a"].to_pylist() == ["x", "X"]
