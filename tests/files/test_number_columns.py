"""Text columns of numbers: in files, models, chunks, frames and exports."""

from __future__ import annotations

import json
import runpy
import shutil
import subprocess
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import branchwise
from branchwise import (
    BranchwiseWarning,
    DataError,
    ModelFileError,
    fit_tree,
    load,
    read_table,
)
from branchwise.data.conventions.number_format import NumberFormat
from branchwise.recipe import CART
from command_line import output, run

ROWS = [
    ("1.007,36", "4,39 %", "1.005,68 €", "ja"),
    ("2.000,00", "5,00 %", "900,00 €", "nein"),
    ("150,50", "3,1 %", "1.100,10 €", "ja"),
    ("(9.999,99)", "12 %", "850 €", "nein"),
    ("", "7,25 %", "910 €", "nein"),
]
NAMES = ("Betrag", "Zins", "Einkommen", "Ausfall")
NUMBERS = {
    "Betrag": [1007.36, 2000, 150.5, -9999.99, None],
    "Zins": [0.0439, 0.05, 0.031, 0.12, 0.0725],
    "Einkommen": [1005.68, 900, 1100.1, 850, 910],
}


@pytest.fixture
def write(tmp_path):
    def write(rows=ROWS, name="table.csv", header=NAMES):
        path = tmp_path / name
        lines = [";".join(row) for row in [header, *rows]]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    return write


def read(path, **options):
    with pytest.warns(BranchwiseWarning, match="read as numbers"):
        return read_table(path, **options)


def fitted(source, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BranchwiseWarning)
        return fit_tree(source, "Ausfall", CART, **more)


def test_a_table_as_german_systems_write_it(write):
    with pytest.warns(BranchwiseWarning) as told:
        table = read_table(write())
    assert str(told[0].message) == (
        "3 text columns are read as numbers: 'Betrag' ('(9.999,99)' is -9999.99), "
        "'Zins' ('4,39 %' is 0.0439), 'Einkommen' ('1.005,68 €' is 1005.68); name "
        "those to keep as text in text_columns."
    )
    assert table.drop_columns(["Ausfall"]).to_pydict() == NUMBERS
    kept = read_table(write(), text_columns=list(NUMBERS))
    assert kept["Zins"].to_pylist()[0] == "4,39 %"


def test_thousands_among_plain_numbers_are_asked_for(write):
    header = (*NAMES, "Kunden")
    rows = [(*row, f"{at}.{at}00") for at, row in enumerate(ROWS, 1)]
    path = write(rows, header=header)
    with pytest.raises(DataError) as told:
        read_table(path)
    assert str(told.value) == (
        f"Column 'Kunden' of {path} can be read in two ways: '1.100' is 1.1 with a "
        "decimal point or 1100 with a point between thousands. Say which is meant: "
        "decimal='.' or thousands='.'; or keep the text with text_columns=['Kunden']."
    )
    assert read(path, thousands=".")["Kunden"].to_pylist()[:2] == [1100, 2200]
    assert read(path, decimal=".")["Kunden"].to_pylist()[:2] == [1.1, 2.2]
    # Other columns say nothing against a plain reading.
    plain = write([("1.100",), ("2.200",)], header=("Kunden",))
    assert read_table(plain)["Kunden"].to_pylist() == [1.1, 2.2]


def test_the_model_keeps_the_convention(write, tmp_path):
    path = write()
    model = fitted(read(path))
    formats = {c.name: c.number_format for c in model.schema.columns}
    assert formats == {
        "Betrag": NumberFormat(",", "."),
        "Zins": NumberFormat(",", percent=True),
        "Einkommen": NumberFormat(",", ".", currency="€"),
    }
    model.save(tmp_path / "model.json")
    again = branchwise.load(tmp_path / "model.json")
    assert again.schema == model.schema
    assert "numeric, written as 1234,56 %" in again.schema.describe()
    document = json.loads((tmp_path / "model.json").read_text("utf-8"))
    document["schema"]["columns"][0]["number_format"]["decimal"] = ";"
    (tmp_path / "model.json").write_text(json.dumps(document), "utf-8")
    with pytest.raises(ValueError, match="'number_format' of column 0 has an invalid"):
        branchwise.load(tmp_path / "model.json")


def test_frames_of_text_are_read_by_the_model(write):
    model = fitted(read(write()))
    texts = pd.DataFrame(ROWS, columns=NAMES)[list(NUMBERS)].replace("", None)
    wanted = model.predict(pd.DataFrame(NUMBERS)).tolist()
    assert wanted == [row[-1] for row in ROWS]
    assert model.predict(texts).tolist() == wanted
    row = dict(zip(NAMES, ROWS[0], strict=True))
    assert model.predict(row).tolist() == ["ja"]
    assert "it is 4.39 %" in str(model.explain(row))
    with pytest.raises(DataError, match=r"numbers written as 1234,56 % but now holds"):
        model.predict(texts.assign(Zins="5 €"))


def test_text_columns_of_frames_stay_text(write):
    texts = pd.DataFrame(ROWS, columns=NAMES)
    model = fitted(texts)
    assert {c.kind for c in model.schema.columns} == {"categorical"}


@pytest.mark.parametrize("marks", [{}, {"thousands": "."}])
def test_chunks_give_the_same_model(write, tmp_path, marks):
    from branchwise.engines.chunked import ChunkedTable
    from branchwise.files.dataset import StreamedTable
    from branchwise.files.options import Reading

    kunden = "12" if not marks else "1.200"
    path = write([(*r, kunden) for r in ROWS * 4], header=(*NAMES, "Kunden"))
    wanted = fitted(read(path, **marks)).to_bytes()
    table = StreamedTable((str(path),), Reading(**marks), chunk_rows=7)
    with (
        pytest.warns(BranchwiseWarning, match="read as numbers"),
        ChunkedTable(table) as source,
    ):
        assert fit_tree(source, "Ausfall", CART).to_bytes() == wanted


def test_models_read_files_by_their_convention(write, tmp_path):
    model = fitted(read(write()))
    wanted = [row[-1] for row in ROWS]
    for name, rows in {"new.csv": ROWS, "more.csv": ROWS[:1]}.items():
        batches = branchwise.predict_rows(model, write(rows, name))
        found = np.concatenate([batch["prediction"] for batch in batches])
        assert found.tolist() == wanted[: len(rows)]
    path = write([("1007.36", "4.39 %", "5 €", "ja")], "plain.csv")
    with pytest.raises(DataError, match=r"must hold numbers written as 1234,56 %"):
        list(branchwise.predict_rows(model, path))


def test_typed_files_are_read_on_request(tmp_path):
    path = tmp_path / "table.parquet"
    pq.write_table(pa.table({"a": ["1,5", "2,5"], "b": ["1.5", "2"]}), path)
    assert read_table(path).to_pydict() == {"a": ["1,5", "2,5"], "b": ["1.5", "2"]}
    assert read(path, number_columns=["a"])["a"].to_pylist() == [1.5, 2.5]
    # Metadata of others do no harm.
    odd = {b"branchwise number format": b"[1]"}
    field = pa.field("a", pa.float64(), metadata=odd)
    table = pa.table({"a": [1.0, 2.0]}, schema=pa.schema([field]))
    model = fit_tree(table, ["u", "v"])
    assert model.schema.columns[0].number_format is None


def test_workbooks_have_texts_of_numbers(tmp_path):
    path = tmp_path / "table.xlsx"
    texts = {"a": ["1.234,5 €", "2,5 €"], "zip": ["00123", "00124"]}
    pd.DataFrame(texts).to_excel(path, index=False)
    assert read(path).to_pydict() == {"a": [1234.5, 2.5], "zip": texts["zip"]}


def test_plain_models_name_what_to_do(write, tmp_path):
    model = fit_tree({"a": [1.5, 2.5]}, ["u", "v"], CART)
    path = write([("1,5", "x")], header=("a", "b"))
    with pytest.raises(DataError, match=r"'1,5', a number that is not written plainly"):
        list(branchwise.predict_rows(model, path))
    path = write([("1,5", "x"), ("y", "x")], header=("a", "b"))
    with pytest.raises(DataError, match=r"'1,5', a number that is not written plainly"):
        read_table(path, number_columns=["a"])


def test_typed_cells_follow_the_convention(write, tmp_path):
    path, model = write(), tmp_path / "model.json"
    fit = "fit", path, "-a", "cart", "-o", model
    run(*fit, "-t", "Ausfall", "--ignore", "Zins,Einkommen")
    # 1.007 would be another number if it were written plainly.
    for text, number in {"1.007": "1007", "1007.5": "1007.5", "(5)": "-5"}.items():
        assert f"(it is {number})" in output(
            "explain", model, "--set", f"Betrag={text}"
        )
    run(*fit, "-t", "Zins", "--regression")
    assert "R^2                      1.0000" in output("evaluate", model, path)


def test_engines_with_types_of_their_own_refuse_such_files(write):
    fit = "fit", write(), "-t", "Ausfall", "--engine", "dask"
    said = run(*fit)[2]
    assert (
        "such as '(9.999,99)', and --engine dask would read text. Use --engine" in said
    )
    assert "or take it as text with --categorical Betrag." in said
    said = run(*fit, "--decimal", "comma")[2]
    assert "--decimal has no effect with --engine dask" in said


TEXTS = [
    "1.007,36",
    "(1.007,36)",
    "-5",
    "5-",
    "+5",
    " 1\u00a0000,5",
    "\u22127,5",
    "1,5e3",
    "1.007.000,36",
    ",5",
]
WRONG = ["1.5", "01.234", "x", "5 €", "(-5)", "5 %", "1.0000", "--5", "(5", "5e"]


def test_python_and_javascript_read_the_same_texts(tmp_path):
    numbers = [-5.0, 5.0, 0.5, 500.0, 1007.36, 1000.5]
    field = pa.field(
        "a",
        pa.float64(),
        metadata={b"branchwise number format": b'{"decimal": ","}'},
    )
    table = pa.table({"a": numbers}, schema=pa.schema([field]))
    model = fit_tree(table, [str(n) for n in numbers], CART)
    wanted = model.predict({"a": TEXTS}).tolist()
    assert len(set(wanted)) > 4
    model.export("python", tmp_path / "tree.py")
    tree = runpy.run_path(str(tmp_path / "tree.py"))
    assert [tree["predict"]({"a": text}) for text in TEXTS] == wanted
    assert tree["predict"]({"a": ""}) == tree["predict"]({})  # a missing number
    for text in WRONG:
        with pytest.raises(ValueError, match="must be a number written as in"):
            tree["predict"]({"a": text})
    if shutil.which("node") is None:
        pytest.skip("there is no Node.js")
    model.export("javascript", tmp_path / "tree.js")
    script = (
        f"const tree = require({json.dumps(str(tmp_path / 'tree.js'))});"
        "const tried = (a) => { try { return tree.predict({a}); }"
        "catch (error) { return null; } };"
        f"console.log(JSON.stringify({json.dumps(TEXTS + WRONG)}.map(tried)));"
    )
    done = subprocess.run(["node", "-e", script], capture_output=True, check=True)
    assert json.loads(done.stdout) == wanted + [None] * len(WRONG)


def test_long_whole_numbers_become_text_with_a_warning(tmp_path):
    path = tmp_path / "accounts.csv"
    path.write_text("account,y\n" + "".join(f"{2**60 + i},{i % 2}\n" for i in range(4)))
    said = "whole numbers beyond 2.53 are taken as names.*'account' of "
    with pytest.warns(BranchwiseWarning, match=said):
        table = read_table(path)
    assert table["account"].to_pylist()[0] == str(2**60)
    with pytest.warns(BranchwiseWarning, match=said):
        fit_tree(path, "y", engine="memory")


def test_the_target_is_read_by_the_convention_of_the_model(tmp_path):
    table, new, model = (tmp_path / name for name in ("a.csv", "b.csv", "model.json"))
    rows = [("a", "1.234,50 €"), ("a", "1.234,50 €"), ("b", "900 €"), ("b", "900 €")]
    lines = [f'{x},"{y}"' for x, y in rows]
    table.write_text("x,price\n" + "\n".join(lines) + "\n")
    fit = "fit", table, "-t", "price", "-a", "cart", "--regression", "-o", model
    code, _, err = run(*fit, "--min-samples-split", "2")
    assert code == 0, err
    stored = json.loads(model.read_text())
    expected = {"decimal": ",", "thousands": ".", "currency": "€"}
    assert stored["schema"]["number_format"] == expected
    assert load(model).to_bytes() == model.read_bytes()
    # Alone, 1.234 may be 1234 or a little more than 1, and 1.500 is plainly 1.5.
    for price in ("1.234 €", "1.500"):
        new.write_text(f"x,price\na,{price}\nb,900\n")
        found = json.loads(output("evaluate", model, new, "--format", "json"))
        error = (1234.5 - float(price[:5]) * 1000) ** 2
        assert found["root_mean_squared_error"] == pytest.approx((error / 2) ** 0.5)
    stored["schema"]["classes"] = ["x", "y"]
    with pytest.raises(ModelFileError, match="has classes and yet a 'number_format'"):
        load(json.dumps(stored).encode())
