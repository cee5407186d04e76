"""What is special about Excel: formulas, digits, texts, sizes, what is refused."""

from __future__ import annotations

import math
import re
import struct
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from zipfile import ZipFile

import pytest

from branchwise import (
    BoostedClassifier,
    C45Classifier,
    CARTClassifier,
    CARTRegressor,
    ExportError,
    ID3Classifier,
    ParameterError,
    RandomForestClassifier,
    datasets,
    export,
    fit_tree,
)
from branchwise.export import excel
from branchwise.export.base import (
    ensemble_predictions,
    plan_of,
    same,
    sample_of_rows,
)
from branchwise.export.excel import ensemble_sheet, sheets, word_sheets
from branchwise.export.excel.sheets import Sheet, column_name, escaped, workbook
from branchwise.export.plan import Field, Node, Plan, PlanSplit, make_plan
from branchwise.export.verification import probe_rows
from branchwise.tree.splits import STOP
from forest_tables import mixed
from mixed_ensembles import random_boosting, random_ensemble
from mixed_trees import HOSTILE, random_models
from selection import first_fast
from workbooks import old_workbook, record

needs_libreoffice = pytest.mark.skipif(
    sheets._absent() is not None, reason="LibreOffice is not here"
)
UNDIVIDED = {"missing": "largest", "unseen": "largest"}
#: All that formulas are made of: no text but the empty one.
FORMULA = re.compile(
    r"(?:\"\"|[A-Z]+\(|known_\d+|(?:Rows|Steps|Tree|Values)!|\$?[A-Z]{1,3}(?:\$?\d+)?|"
    r"TRUE|FALSE|\d+|[-+*/<>=,:()&])+"
)


@pytest.fixture
def weather():
    table = datasets.load("weather")
    return fit_tree(table.X, table.y)


def parts_of(content):
    with ZipFile(BytesIO(content)) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def plan_with(field, classes=("no", "yes"), threshold=None):
    split = PlanSplit(0, threshold, ((0,), (1,)), STOP, STOP, (0.5, 0.5))
    leaves = [Node(None, -1, code, (1.0 - code, float(code)), None) for code in (0, 1)]
    root = Node(split, 1, 0, (0.5, 0.5), None)
    nodes = (root, *leaves)
    return Plan("t", "a tree", (field,), classes, nodes, False, False, None)


def test_nothing_that_users_wrote_is_in_a_formula():
    """Names and values are texts of their own; formulas are made of known parts."""
    tried = 0
    for model in random_models(28, seed=40):
        try:
            parts = parts_of(export.write(model, "excel", lines="2"))
        except ExportError:
            continue
        written = "".join(p for name, p in parts.items() if "worksheets" in name)
        formulas = re.findall("<f(?:ormula[12]?)?>([^<]*)</f", written)
        assert formulas
        for formula in formulas:
            plain = formula.replace("&lt;", "<").replace("&gt;", ">")
            assert FORMULA.fullmatch(plain.replace("&amp;", "&")), formula
            assert len(formula) < 8192
        tried += 1
    assert tried > 15


def test_the_workbook_is_one():
    openpyxl = pytest.importorskip("openpyxl")
    table = datasets.load("weather")
    model = C45Classifier().fit(table.X, table.y).model_
    content = export.write(model, "excel", lines="7")
    assert content == export.write(model, "excel", lines="7")
    book = openpyxl.load_workbook(BytesIO(content))
    words = ["Rows", "Rules", "How to use"]
    assert book.sheetnames == [*words, "Steps", "Tree", "Values"]
    header, first, *others = book["Rows"].values
    assert header == (
        *("outlook", "humidity", "windy", "prediction"),
        *("probability of no", "probability of yes", "rule"),
    )
    assert first[:3] == (None, None, None)
    assert first[3].startswith("=IF(OR(COUNTA(A2:C2)=0,")
    assert len(others) == 6


def test_a_workbook_guides_who_fills_it_in(weather):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.load_workbook(BytesIO(export.write(weather, "excel", lines="7")))
    rows = book["Rows"]
    assert [rows.cell(2, column).number_format for column in (4, 5, 6)] == [
        *("General", "0.0%", "0.0%")
    ]
    checks = {str(v.sqref): v for v in rows.data_validations.dataValidation}
    assert sorted(checks) == ["A2:A8", "B2:B8", "C2:C8"]
    assert checks["A2:A8"].formula1 == "known_1"
    assert checks["A2:A8"].type == "list"
    assert checks["A2:A8"].errorStyle == "warning"
    assert checks["B2:B8"].type == "decimal"
    values = dict(weather.schema.columns[0].code_of)
    known = book.defined_names["known_1"].attr_text
    assert known == f"Values!$B$2:$B${len(values) + 1}"
    assert {cell.value for (cell,) in book["Values"]["B2:B4"]} == set(values)
    marked = [str(area.sqref) for area in rows.conditional_formatting]
    assert marked == ["A2:A8", "B2:B8", "C2:C8", "A2:C8"]
    lines = [line for (line,) in book["How to use"].values]
    assert lines[0] == "How to use: ID3 decision tree with 5 leaves"
    assert any("yellow columns" in line for line in lines)
    assert any(line.startswith("Formulas are in 7 lines. For more") for line in lines)
    refusing = ID3Classifier(missing="error", unseen="error")
    model = refusing.fit({"a": ["x", "y"]}, ["no", "yes"]).model_
    book = openpyxl.load_workbook(BytesIO(export.write(model, "excel", lines="7")))
    (check,) = book["Rows"].data_validations.dataValidation
    assert check.errorStyle is None  # stops
    lines = [line for (line,) in book["How to use"].values]
    assert "A line with a missing value has no prediction." in lines


def test_the_rules_are_there_in_words(monkeypatch, weather):
    openpyxl = pytest.importorskip("openpyxl")

    def sheet(model, name="Rules"):
        book = openpyxl.load_workbook(BytesIO(export.write(model, "excel", lines="2")))
        return list(book[name].values) if name in book.sheetnames else None

    assert sheet(weather) == [
        ("if", "prediction", "probability of no", "probability of yes"),
        ("outlook = overcast", "yes", 0, 1),
        ("outlook = rainy and windy = FALSE", "yes", 0, 1),
        ("outlook = rainy and windy = TRUE", "no", 1, 0),
        ("outlook = sunny and humidity ≤ 80", "yes", 0, 1),
        ("outlook = sunny and humidity ≥ 81", "no", 1, 0),
    ]
    X = {"n": [1, 2, 3, 4, 5, 6], "c": list("aabbab")}
    numbers = CARTRegressor(max_depth=2).fit(X, [1.0, 2.0, 3.0, 9.0, 9.5, 9.0]).model_
    found = sheet(numbers)
    assert found[0] == ("if", "prediction")
    assert len(found) == numbers.tree.n_leaves + 1
    forest = RandomForestClassifier(n_estimators=3, max_depth=2, **UNDIVIDED)
    found = sheet(forest.fit(*mixed(100)).model_)
    assert found[0][:3] == ("tree", "if", "prediction")
    assert {row[0] for row in found[1:]} == {1, 2, 3}
    monkeypatch.setattr(word_sheets, "MOST_NODES", 3)
    assert sheet(weather) is None
    assert sheet(weather, "Rows")[0][-1] == "probability of yes"
    lines = [line for (line,) in sheet(weather, "How to use")]
    assert "Models of more than 3 nodes have no rules in words here." in lines


@needs_libreoffice
def test_the_rule_that_decided_is_beside_the_prediction():
    table = datasets.load("weather")
    model = C45Classifier().fit(table.X, table.y).model_
    plan = plan_of(model)
    rows = [("sunny", 70.0, None), ("sunny", 95.0, None), (None, 70.0, "TRUE")]
    parts = parts_of(export.write(model, "excel", lines="3"))
    filled = sheets._filled(parts[sheets._ROWS_SHEET].encode(), rows)
    parts[sheets._ROWS_SHEET] = filled.decode()
    with TemporaryDirectory() as folder:
        with ZipFile(Path(folder) / "a.xlsx", "w") as copy:
            for name, part in parts.items():
                copy.writestr(name, part)
        sheets._calculate(["a.xlsx"], Path(folder))
        results = sheets.formula_results((Path(folder) / "a.xls").read_bytes())
    column = len(plan.fields) + 1 + len(plan.classes)
    told = [results[row, column] for row in (1, 2, 3)]
    assert told[0] == "outlook = sunny and humidity ≤ 75"
    assert told[1] == "outlook = sunny and humidity > 75"
    assert told[2] == word_sheets.FRACTIONAL_RULE


def test_bounds_decide_as_cuts_do():
    random = Random(3)
    cuts = [0.1, 0.3, 77.5, 1 / 3, -1 / 3, 2 / 3, 1e16 + 2, 0.0, -0.7]
    cuts += [random.gauss(0, 1) * 10.0 ** random.randint(-9, 9) for _ in range(500)]
    for cut in cuts:
        bound = excel.bound(cut)
        assert float(f"{bound:.14g}") == bound
        tries = {bound, float(f"{cut:.14g}"), float(f"{cut:.3g}")}
        digit = 10.0 ** (math.floor(math.log10(abs(cut))) - 13) if cut else 1e-14
        tries |= {float(f"{bound + step * digit:.14g}") for step in (-1, 1, 2)}
        for number in tries:
            assert (number <= bound) == (number <= cut), (cut, number)


def test_texts_are_escaped_as_workbooks_do():
    assert escaped("a\rb_x0041_c\0") == "a_x000D_b_x005F_x0041_c_x0000_"
    assert escaped("line\nand\ttab _x") == "line\nand\ttab _x"
    with pytest.raises(ExportError, match=r"at most 32,767 characters.* has 40,000"):
        escaped("a" * 40_000)
    with pytest.raises(ExportError, match="no valid Unicode"):
        escaped("\ud800")
    assert [column_name(i) for i in (0, 25, 26, 701, 702)] == [
        *("A", "Z", "AA", "ZZ", "AAA")
    ]


def test_cells_are_read_as_they_were_written():
    """Texts are neither formulas nor links nor escapes, numbers have all digits."""
    openpyxl = pytest.importorskip("openpyxl")
    texts = [text for text in HOSTILE if text and "\r" not in text]
    texts += ["{=1+1}", "http://a.b/c", "_x0041_", "_x0041_x0042_", " _x0041_x0042_x00"]
    numbers = [1 / 3, 0.1 + 0.2, 5e-324, 1.7976931348623157e308, 2**53, 7, True, -1.5]
    cells = [*texts, *numbers]
    content = workbook([Sheet("a", [["header"], *([cell] for cell in cells)])])
    page = openpyxl.load_workbook(BytesIO(content))["a"]
    assert [cell for (cell,) in page.iter_rows(2, values_only=True)] == cells
    assert not any(cell.data_type == "f" for (cell,) in page.iter_rows())


def test_results_of_formulas_are_read():
    def formula(row, result):
        tail = result + bytes(8)
        return record(6, row, 1, 0, form="HHH", content=tail)

    text, long = b"\0\0\0\0\0\0\xff\xff", "é" * 6000
    sheet = formula(1, struct.pack("<d", 0.1 + 0.2))
    sheet += formula(2, text) + record(0x207, 3, 1, form="HB", content=b"a\0b\0=\xd8")
    sheet += record(0x3C, 1, form="B", content=b"\x00\xde")
    sheet += formula(3, b"\3" + text[1:]) + formula(4, b"\2\0*" + text[3:])
    sheet += formula(5, b"\1\0\1" + text[3:]) + formula(6, text)
    halves = long[:4000].encode("latin-1"), long[4000:].encode("latin-1")
    sheet += record(0x207, 6000, 0, form="HB", content=halves[0])
    sheet += record(0x3C, 0, form="B", content=halves[1]) + record(0x0A)
    results = sheets.formula_results(old_workbook(sheet))
    expected = [0.1 + 0.2, "ab\U0001f600", "", None, True, long]
    assert [results[row, 1] for row in range(1, 7)] == expected


def test_rows_are_filled_into_a_copy():
    openpyxl = pytest.importorskip("openpyxl")
    table = datasets.load("weather")
    content = export.write(fit_tree(table.X, table.y), "excel", lines="3")
    sheet = "xl/worksheets/sheet1.xml"
    rows = [("=1+1", 0.1 + 0.2, True), (None, 1.0, None), ("a\0_x0041_", None, False)]
    parts = parts_of(content)
    parts[sheet] = sheets._filled(parts[sheet].encode(), rows).decode()
    copy = BytesIO()
    with ZipFile(copy, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    page = openpyxl.load_workbook(copy)["Rows"]
    found = list(page.iter_rows(2, values_only=True))
    assert [row[1:3] for row in found] == [row[1:] for row in rows]
    assert [row[0] for row in found] == ["=1+1", None, escaped("a\0_x0041_")]
    assert all(row[3].startswith("=IF(") for row in found)


def test_xlsxwriter_is_named_where_it_is_not_installed(monkeypatch, weather):
    monkeypatch.setattr(sheets, "find_spec", lambda name: None)
    with pytest.raises(ExportError, match=r"pip install 'branchwise\[excel\]'"):
        export.write(weather, "excel")


def test_rows_that_a_sheet_cannot_hold():
    number = Field("x", 0, "number", True, ())
    text = Field("t", 1, "text", False, ("a\rb", "é"))
    plan = plan_with(number)
    fields = (number, text)
    plan = Plan("t", "", fields, plan.classes, plan.nodes, False, False, None)
    assert excel.fitting(plan, (0.1, "é")) == (0.1, "é")
    assert excel.fitting(plan, (1 / 3, "")) == (0.33333333333333, None)
    assert excel.fitting(plan, (5e-324, "a\rb")) == (None, "a\rb")
    # A line break is all the same to a sheet: the second is no unknown value there.
    assert excel.fitting(plan, (1.0, "a\nb")) == (1.0, None)
    assert excel.fitting(plan, (None, None)) is None


@pytest.mark.parametrize("lines", ["0", "-1", "many", "10001", "1.5"])
def test_a_number_of_lines_that_cannot_be(weather, lines):
    with pytest.raises(ParameterError, match=r"lines of .* from 1 to 10,000\. Got"):
        export.write(weather, "excel", lines=lines)


def test_values_that_a_sheet_takes_for_the_same():
    field = Field("t", 0, "text", False, ("a\r\nb", "a\nb"))
    with pytest.raises(ExportError, match=r"Column 't' has the values .* the same"):
        excel.write(plan_with(field), {"lines": "1"})
    field = Field("n", 0, "number", False, (0.1, math.nextafter(0.1, 1)))
    with pytest.raises(ExportError, match=r"'n' has the value .* 14 digits"):
        excel.write(plan_with(field), {"lines": "1"})


def test_what_is_too_large_is_refused(monkeypatch, weather):
    for limit in ("_MOST_COLUMNS", "_MOST_FORMULAS", "_MOST_STATES", "_MOST_FIELDS"):
        with monkeypatch.context() as patch:
            patch.setattr(excel, limit, 1)
            with pytest.raises(ExportError, match=r"cannot hold this tree: it .*Req"):
                export.write(weather, "excel")


def test_numbers_that_cancel_are_refused():
    X = {"a": ["x", "y", None, "y"]}
    tree = CARTRegressor(missing="split", min_samples_leaf=1)
    model = tree.fit(X, [-1.0, 1.0, 1.0, 1.0]).model_
    with pytest.raises(ExportError, match="adds up numbers of both signs"):
        export.write(model, "excel")


@needs_libreoffice
def test_hostile_texts_are_texts():
    """Every text as a value, among them formulas: none is evaluated."""
    values = tuple(text for text in HOSTILE if text)
    question = PlanSplit(
        0, None, tuple((i,) for i in range(len(values))), STOP, STOP, (0.5, 0.5)
    )
    nodes = [Node(question, 1, 0, (1.0,) * len(values), None)]
    nodes += [Node(None, -1, i, (0.0,) * len(values), None) for i in range(len(values))]
    field = Field("=1+1", 0, "text", False, values)
    plan = Plan("t", "", (field,), values, tuple(nodes), False, False, None)
    rows = [(text,) for text in values] + [("PLAIN",), ("plain ",), ("pl*",), ("2",)]
    (runner,) = excel.TARGET.runners({"lines": "100"})
    got = runner.run(excel.write(plan, {"lines": "100"}), plan, rows)
    assert [answer[0] for answer in got] == [*values, *[values[0]] * 4]


@needs_libreoffice
def test_divided_cases_and_rows_that_are_left_out():
    table = datasets.load("weather")
    model = C45Classifier(costs=[[0, 1], [3, 0]]).fit(table.X, table.y).model_
    plan = make_plan(model.schema, model.tree, model.recipe)
    assert plan.divides
    X = {name: [*column, None, None] for name, column in table.X.items()}
    X["humidity"][-1] = 77.50000000000001
    done = export.verify(model, "excel", X, lines="9")
    assert done.ok, str(done)
    assert done.n_rows == 14
    assert str(done).splitlines() == [
        "excel: 14 rows in LibreOffice: 0 differences",
        f"excel: 2 rows not tried: {excel.TARGET.domain}",
    ]


@needs_libreoffice
@pytest.mark.slow
def test_refused_rows_are_left_empty():
    X = {"colour": ["red", "blue"] * 3, "n": [1.0, 2.0] * 3}
    model = ID3Classifier(missing="error", unseen="error").fit(X, [True, False] * 3)
    rows = {"colour": ["red", None, "green", "blue"], "n": [1.0, 1.0, 2.0, None]}
    done = export.verify(model.model_, "excel", rows)
    assert done.ok, str(done)


def dated(unit, **changes):
    first = datetime(2024, 2, 27, **changes)
    days = [first + i * unit for i in range(12)]
    estimator = CARTClassifier(min_samples_leaf=1, min_samples_split=2)
    return estimator.fit({"at": days}, ["no"] * 5 + ["yes"] * 3 + ["no"] * 4).model_


@needs_libreoffice
@pytest.mark.parametrize("unit", first_fast([timedelta(seconds=47), timedelta(1)]))
def test_dates_and_times_are_calculated(unit):
    done = export.verify(dated(unit), "excel")
    assert done.ok, str(done)
    assert done.n_rows > 10


def test_dates_are_dates_of_the_sheet():
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.load_workbook(BytesIO(export.write(dated(timedelta(1)), "excel")))
    (check,) = book["Rows"].data_validations.dataValidation
    assert check.type == "date"
    assert book["Rows"].column_dimensions["A"].number_format == "yyyy-mm-dd"
    rules = [row[0] for row in book["Rules"].values]
    assert "at ≤ 2024-03-02" in rules
    with pytest.raises(ExportError, match=r"'at' has times with time zones"):
        export.write(dated(timedelta(1), tzinfo=UTC, hour=3), "excel")
    with pytest.raises(ExportError, match=r"'at' has times with fractions of seconds"):
        export.write(dated(timedelta(microseconds=3)), "excel")


def test_what_is_not_here_is_said(monkeypatch, weather):
    monkeypatch.setattr(sheets.shutil, "which", lambda name: None)
    done = export.verify(weather, "excel")
    assert done.absent[0].startswith("LibreOffice is not installed")


def test_what_does_not_calculate_is_said(monkeypatch, weather):
    monkeypatch.setattr(sheets, "_program", lambda: "false")
    with pytest.raises(ExportError, match="did not calculate the workbook"):
        export.verify(weather, "excel")
    with pytest.raises(ExportError, match="no compound file"):
        sheets.formula_results(b"PK")


def test_too_many_columns_to_read():
    fields = tuple(Field(f"c{i}", i, "number", True, ()) for i in range(255))
    plan = plan_with(fields[0], threshold=1.0)
    plan = Plan("t", "", fields, plan.classes, plan.nodes, False, False, None)
    with pytest.raises(ExportError, match="more than 256 columns"):
        sheets._run(b"", plan, [])


def calculated(ensembles, n_rows):
    """Yield plan, expected and calculated predictions, of one run of LibreOffice."""
    with TemporaryDirectory() as folder:
        cases = []
        for number, ensemble in enumerate(ensembles):
            plan = plan_of(ensemble)
            nearest = (sheets.fitting(plan, r) for r in probe_rows(plan, n_rows))
            rows = [row for row in nearest if row is not None]
            sample = sample_of_rows(rows, ensemble.schema, plan)
            wanted = ensemble_predictions(ensemble, plan, sample)
            content = export.write(ensemble, "excel", lines=str(len(rows)))
            parts = {name: part.encode() for name, part in parts_of(content).items()}
            sheet = sheets._ROWS_SHEET
            parts[sheet] = sheets._filled(parts[sheet], rows)
            with ZipFile(Path(folder) / f"{number}.xlsx", "w") as copy:
                for name, part in parts.items():
                    copy.writestr(name, part)
            cases.append((plan, wanted))
        names = [f"{number}.xlsx" for number in range(len(cases))]
        sheets._calculate(names, Path(folder))
        for number, (plan, wanted) in enumerate(cases):
            content = (Path(folder) / f"{number}.xls").read_bytes()
            results = sheets.formula_results(content)
            read = sheets._prediction
            got = [read(results, row, plan) for row in range(1, len(wanted) + 1)]
            yield plan, wanted, got


def check_several(ensembles, n_rows=60):
    for plan, wanted, got in calculated(ensembles, n_rows):
        slack = ensemble_sheet.rounding(plan)
        for expected, result in zip(wanted, got, strict=True):
            assert same(expected, result, plan, slack), (plan.about, expected, result)


@needs_libreoffice
@pytest.mark.slow
def test_ensembles_that_were_fitted():
    X, y = mixed(100)
    forests = (
        RandomForestClassifier(n_estimators=3, max_depth=3),
        RandomForestClassifier(n_estimators=22, max_depth=1, voting="hard"),
        RandomForestClassifier(n_estimators=3, max_depth=3, costs=[[0, 3], [1, 0]]),
        RandomForestClassifier(n_estimators=1, max_depth=0),
        BoostedClassifier(n_estimators=3, max_depth=2, missing="largest"),
    )
    fitted = [forest.set_params(**UNDIVIDED).fit(X, y).model_ for forest in forests]
    links = [random_boosting(12, seed) for seed in range(12, 16)]
    check_several([*fitted, *links], 30)


@needs_libreoffice
@pytest.mark.slow
@pytest.mark.parametrize("make", [random_ensemble, random_boosting])
def test_ensembles_of_every_kind_of_tree(make):
    held = []
    for seed in range(28):
        with suppress(ExportError):
            ensemble = make(seed, seed)
            export.write(ensemble, "excel", lines="60")
            held.append(ensemble)
    assert len(held) > 8
    check_several(held)


def test_ensembles_that_no_workbook_holds():
    with pytest.raises(ExportError, match=r"this ensemble: its trees divide cases .*"):
        export.write(random_ensemble(3, 3), "excel")
    X, y = mixed(100)
    forest = RandomForestClassifier(n_estimators=30).fit(X, y).model_
    with pytest.raises(ExportError) as caught:
        export.write(forest, "excel", lines="10000")
    assert str(caught.value).startswith(
        "An Excel workbook cannot hold this ensemble of 30 trees: it needs "
    )
    assert str(caught.value).endswith(
        "in each of 10,000 lines, more than 400,000 in all. Request fewer lines, fit "
        "fewer or smaller trees (n_estimators, max_depth), export one tree "
        "(best_tree() or ensemble[0]), or export it to another target."
    )


def test_sums_of_both_signs_may_be_rounded():
    numbers = plan_of(random_boosting(12, 12))
    assert 0 < ensemble_sheet.rounding(numbers) < 1e-10
    assert ensemble_sheet.rounding(plan_of(random_boosting(12, 14))) == 0
    given = (1.5, ())
    assert same(given, (1.5 + 1e-13, ()), numbers, 1e-12)
    assert not same(given, (1.5 + 1e-11, ()), numbers, 1e-12)
