"""Metadata, unused columns and cells of new tables on the command line."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from branchwise import load
from command_line import WEATHER, output, refusal, run


@pytest.fixture(name="tree")
def fitted(tmp_path):
    path = tmp_path / "tree.json"
    output("fit", WEATHER, "-t", "play", "-a", "id3", "-o", path)
    return path


def test_metadata_is_kept_and_shown(tmp_path):
    path = tmp_path / "named.json"
    given = ("--name", "Golf", "--date", "2026-03-31", "--notes", "Two\nlines.")
    output("fit", WEATHER, "-t", "play", "-o", path, "--data-hash", *given)
    metadata = load(path).metadata
    content = Path(WEATHER).read_bytes()
    assert metadata.data_hash == f"sha256:{hashlib.sha256(content).hexdigest()}"
    assert (metadata.name, metadata.date) == ("Golf", "2026-03-31")
    shown = output("show", path)
    assert shown.startswith("Golf, 2026-03-31\nTwo\nlines.\n\noutlook = overcast")
    described = json.loads(output("show", path, "--format", "json"))
    assert described["metadata"] == metadata.given
    assert described["schema"]["columns"][1] == {
        "name": "temperature",
        "kind": "numeric",
        "has_missing": False,
        "known": 14,
        "missing": 0,
        "low": 64,
        "high": 85,
    }
    smaller = tmp_path / "smaller.json"
    output("prune", path, "--drop-unused", "--name", "Small golf", "-o", smaller)
    assert load(smaller).metadata.given == metadata.given | {"name": "Small golf"}
    assert "temperature" not in load(smaller).schema.names


def test_a_forest_without_unused_columns(tmp_path):
    path = tmp_path / "forest.json"
    growing = ("-a", "forest", "--n-estimators", 2, "--max-depth", 1)
    output("fit", WEATHER, "-t", "play", *growing, "--drop-unused", "-o", path)
    assert len(load(path).schema.columns) <= 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--date", "31.3.2026"), "--date must be a date, or a date and time"),
        (("--name", ""), "--name must be a text of 1 to 1,000 characters"),
    ],
)
def test_metadata_that_cannot_be(arguments, message):
    assert message in refusal("fit", WEATHER, "-t", "play", *arguments, code=2)


def test_labels_at_fit_and_at_show(tree, tmp_path):
    labels = tmp_path / "labels.toml"
    labels.write_text(
        "[outlook]\ntitle = 'Sky'\norder = ['sunny', 'overcast', 'rainy']\n"
        "[humidity]\nunit = '%'\n[play.words]\nyes = 'golf'\n",
        encoding="utf-8",
    )
    shown = output("show", tree, "--labels", labels)
    assert "Sky = overcast: golf (4)" in shown
    assert "humidity <= 80 %: golf" in shown
    assert "outlook" in output("show", tree)
    path = tmp_path / "ordered.json"
    output("fit", WEATHER, "-t", "play", "-a", "cart", "--labels", labels, "-o", path)
    column = load(path).schema.columns[0]
    assert (column.kind, column.categories[0]) == ("ordinal", "sunny")
    assert "Sky" in output("show", path)
    page = tmp_path / "page.html"
    output("view", path, "--no-open", "-o", page, "--labels", labels)
    assert '"Sky"' in page.read_text("utf-8")
    assert "has no column" in refusal(
        "show", tree, "--labels", _written(tmp_path / "a.json", '{"sky": "Sky"}')
    )


def _written(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_options_of_a_file_need_one():
    for option in ("--drop-unused", "--data-hash"):
        message = refusal("fit", WEATHER, "-t", "play", option, code=2)
        assert message == (
            f"{option} has no effect without -o FILE, the model file that it is for."
        )
    printed = output("fit", WEATHER, "-t", "play", "--name", "Golf")
    assert printed.startswith("Golf\n\noutlook = ")


def test_standard_input_has_no_hash():
    given = ("fit", "-", "-t", "play", "--data-hash", "-o", "-")
    code, _, err = run(*given, stdin=Path(WEATHER).read_text("utf-8"))
    assert code == 2
    assert "--data-hash is that of the bytes of files, and these are none: '-'" in err


def test_odd_cells_are_noted(tree, tmp_path):
    new = tmp_path / "new.csv"
    new.write_text(
        "outlook,humidity,windy,play\nfoggy,70,TRUE,no\nsunny,990,,yes\nsunny,1,TRUE,no\n",
        encoding="utf-8",
    )
    notes = (
        "note: column 'outlook': 1 of 3 values not seen in training.\n"
        "note: column 'humidity': 2 of 3 values outside of 65 to 96, the range in "
        "training.\n"
        "note: column 'windy': 1 of 3 values missing (none in training).\n"
    )
    for engine in ("memory", "chunked"):
        code, _, err = run("predict", tree, new, "--engine", engine)
        assert (code, err) == (0, notes)
        assert run("predict", tree, new, "--engine", engine, "-q")[2] == ""
    code, out, err = run("evaluate", tree, new, "--format", "json")
    assert (code, err) == (0, notes)
    assert json.loads(out)["columns"] == {
        "outlook": {"missing": 0, "unseen": 1, "below": 0, "above": 0},
        "humidity": {"missing": 0, "unseen": 0, "below": 1, "above": 1},
        "windy": {"missing": 1, "unseen": 0, "below": 0, "above": 0},
    }


def test_titles_and_units_of_parquet_files_are_used(tmp_path):
    inc = pa.field("inc", pa.float64(), metadata={"title": "Income", "unit": "EUR"})
    own = pa.field("own", pa.string(), metadata={"title": "y", "other": "x"})
    fields = pa.schema([inc, own, pa.field("y", pa.string())])
    cells = [[1.0, 2.0, 3.0, 4.0] * 5, ["a", "b"] * 10, ["p", "p", "q", "q"] * 5]
    table = pa.table(dict(zip(fields.names, cells, strict=True)), schema=fields)
    parquet.write_table(table, tmp_path / "rows.parquet")
    shown = output("fit", tmp_path / "rows.parquet", "-t", "y", "-a", "id3")
    assert "Income <= 2 EUR: p (10)" in shown
