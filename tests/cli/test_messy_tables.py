"""Tables as people have them: each is fitted, evaluated and exported, uncleaned."""

from __future__ import annotations

import csv
import datetime as dt
import json
import runpy
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from branchwise import BranchwiseWarning, FitWarning, fit_tree, read_table
from branchwise.engines.sql import SqlTable
from branchwise.recipe import CART
from command_line import output, run
from sql_sources import in_duckdb

N_ROWS = 120


@dataclass(frozen=True)
class Messy:
    """A table: how it is written, its target, and the options that read it."""

    write: Callable[[Path, np.random.Generator], Path]
    target: str
    options: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()


def lines(
    path: Path,
    header: str,
    rows: list[str],
    title: tuple[str, ...] = (),
    end: str = "\n",
    encoding: str = "utf-8",
) -> Path:
    """Write a file of text."""
    path.write_bytes(end.join([*title, header, *rows, ""]).encode(encoding))
    return path


def grouped(number: float, mark: str, decimal: str, digits: int = 2) -> str:
    """Write a number with marks between thousands."""
    text = f"{number:,.{digits}f}"
    return text.replace(",", "\0").replace(".", decimal).replace("\0", mark)


def amounts(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return amounts, and whether each is large."""
    amount = np.round(rng.lognormal(8, 1, N_ROWS), 2)
    return amount, amount > np.median(amount)


def german(folder: Path, rng: np.random.Generator) -> Path:
    amount, large = amounts(rng)
    rows = []
    for at, (a, bad) in enumerate(zip(amount, large, strict=True)):
        word = rng.choice(["ja", "Ja", "JA"] if bad else ["nein", "Nein"])
        rate = f"{grouped(rng.uniform(1, 9), '.', ',')} %" if at % 40 != 7 else "k.A."
        income = f"{grouped(rng.lognormal(8), '.', ',')} €"
        cells = [f"KD-{at}", grouped(a, ".", ","), rate, income, f"{at % 9:05}", word]
        rows.append(";".join(cells))
    header = ";Kreditbetrag;Zinssatz;Nettoeinkommen;PLZ;Ausfall?"
    return lines(folder / "kredite.csv", header, rows, end="\r\n", encoding="utf-8-sig")


def french(folder: Path, rng: np.random.Generator) -> Path:
    amount, large = amounts(rng)
    rows = [
        f"{grouped(a, chr(0x202F), ',')} €;{grouped(a / 7, chr(0xA0), ',', 1)};"
        f"{'oui' if bad else 'non'}"
        for a, bad in zip(amount, large, strict=True)
    ]
    return lines(folder / "prets.csv", "montant;revenu;défaut", rows)


def swiss(folder: Path, rng: np.random.Generator) -> Path:
    amount, large = amounts(rng)
    rows = [
        f"CHF {grouped(a, chr(0x2019), '.')};{rng.integers(1, 9)};{int(bad)}"
        for a, bad in zip(amount, large, strict=True)
    ]
    return lines(folder / "kredite.csv", "Betrag;Kinder;Ausfall", rows)


def american(folder: Path, rng: np.random.Generator) -> Path:
    amount, large = amounts(rng)
    rows = []
    for a, bad in zip(amount, large, strict=True):
        balance = rng.normal(0, 5000)
        shown = f"${grouped(abs(balance), ',', '.')}"
        rows.append(
            f'"${grouped(a, ",", ".")}","{f"({shown})" if balance < 0 else shown}",'
            f'{rng.uniform(0, 100):.1f}%,"{grouped(a // 1, ",", ".", 0)}",'
            f"{'Bad' if bad else 'Good'}"
        )
    return lines(folder / "loans.csv", "Amount,Balance,Use,Salary,Class", rows)


def indian(folder: Path, rng: np.random.Generator) -> Path:
    def lakhs(number: float) -> str:
        whole, _, fraction = f"{number:.2f}".partition(".")
        groups = [whole[-3:]]
        whole = whole[:-3]
        while whole:
            groups.insert(0, whole[-2:])
            whole = whole[:-2]
        return f"{','.join(groups)}.{fraction}"

    amount, large = amounts(rng)
    rows = [
        f'"₹{lakhs(a * 100)}",{rng.integers(1, 9)},{"yes" if bad else "no"}'
        for a, bad in zip(amount, large, strict=True)
    ]
    return lines(folder / "loans.csv", "amount,children,default", rows)


def titled(folder: Path, rng: np.random.Generator) -> Path:
    amount, large = amounts(rng)
    rows = [f"{a};{'u' if bad else 'v'}" for a, bad in zip(amount, large, strict=True)]
    title = ("Portfolio of January", "generated 2024-01-31", "")
    return lines(folder / "report.csv", "amount;class", rows, title=title)


def mixed_case(folder: Path, rng: np.random.Generator) -> Path:
    rows = []
    for at in range(N_ROWS):
        color = ["red", "Red", "RED ", "blue", " Blue"][at % 5]
        word = ["yes", "Yes", "YES"][at % 3] if at % 5 < 3 else ["no", "No"][at % 2]
        rows.append(f"{color},{word}")
    return lines(folder / "words.csv", "color,answer", rows)


def workbook(folder: Path, rng: np.random.Generator) -> Path:
    amount, large = amounts(rng)
    path = folder / "book.xlsx"
    texts = [f"{grouped(a, '.', ',')} €" for a in amount]
    table = [["Monthly report", None], ["amount", "class"]]
    table += [[t, "u" if bad else "v"] for t, bad in zip(texts, large, strict=True)]
    with pd.ExcelWriter(path) as book:
        for name, rows in (("Loans", table), ("Notes", [["k"], [1]])):
            sheet = pd.DataFrame(rows)
            sheet.to_excel(book, sheet_name=name, index=False, header=False)
    return path


def json_lines(folder: Path, rng: np.random.Generator) -> Path:
    amount, large = amounts(rng)
    path = folder / "loans.jsonl"
    rows = [
        {"id": 2**60 + at, "amount": float(a), "class": "u" if bad else "v"}
        for at, (a, bad) in enumerate(zip(amount, large, strict=True))
    ]
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return path


def wide(folder: Path, rng: np.random.Generator) -> Path:
    amount, large = amounts(rng)
    noise = rng.normal(0, 1000, (N_ROWS, 498))
    rows = [
        ";".join([grouped(a, ".", ","), *(grouped(x, ".", ",") for x in others), word])
        for a, others, word in zip(
            amount, noise, np.where(large, "u", "v").tolist(), strict=True
        )
    ]
    header = ";".join(["amount", *(f"x{at}" for at in range(498)), "class"])
    return lines(folder / "wide.csv", header, rows)


def long(folder: Path, rng: np.random.Generator) -> Path:
    n = 200_000
    amount = np.round(rng.lognormal(8, 1, n), 2)
    rows = [
        f"{grouped(a, '.', ',')} €;{at % 7} %;{'ja' if a > 3000 else 'nein'}"
        for at, a in enumerate(amount.tolist())
    ]
    return lines(folder / "long.csv", "Betrag;Satz;Ausfall", rows)


def dated(folder: Path, rng: np.random.Generator) -> Path:
    """Dates as German systems write them, one of them with a time, and one missing."""
    days = rng.integers(0, 700, N_ROWS)
    late = days > np.median(days)
    rows = []
    for at, (day, bad) in enumerate(zip(days.tolist(), late, strict=True)):
        opened = dt.date(2022, 5, 1) + dt.timedelta(day)
        seen = dt.datetime(2024, 1, 1, 8, 15) + dt.timedelta(hours=at)
        text = "" if at == 7 else opened.strftime("%d.%m.%Y")
        rows.append(
            f"{text};{seen:%d.%m.%Y %H:%M};{rng.integers(9)};{'ja' if bad else 'nein'}"
        )
    return lines(folder / "konten.csv", "eröffnet;gesehen;Zahl;Ausfall", rows)


def american_dates(folder: Path, rng: np.random.Generator) -> Path:
    """Days up to 12 only, so that the month must be told from the day."""
    months = rng.integers(1, 13, N_ROWS).tolist()
    rows = [
        f"{month:02}/{rng.integers(1, 13):02}/2023,{rng.integers(9)},{month > 6}"
        for month in months
    ]
    return lines(folder / "accounts.csv", "opened,n,late", rows)


TABLES = {
    "dates": Messy(
        dated,
        "Ausfall",
        (),
        ("2 text columns are read as dates",),
        ("eröffnet", "gesehen"),
    ),
    "American dates": Messy(
        american_dates,
        "late",
        ("--date-format", "MM/DD/YYYY"),
        ("1 text column is read as dates",),
        ("opened",),
    ),
    "german": Messy(
        german,
        "Ausfall?",
        ("--missing", "k.A.", "--merge-case", "--ignore", "", "--categorical", "PLZ"),
        ("3 text columns are read as numbers", "has no name for 'column_1'"),
        ("Kreditbetrag", "Zinssatz", "Nettoeinkommen"),
    ),
    "french": Messy(french, "défaut", (), ("2 text columns",), ("montant", "revenu")),
    "swiss": Messy(swiss, "Ausfall", (), ("1 text column is",), ("Betrag",)),
    "american": Messy(
        american,
        "Class",
        ("--thousands", "comma"),
        ("4 text columns",),
        ("Amount", "Balance", "Use", "Salary"),
    ),
    "indian": Messy(indian, "default", (), ("1 text column is",), ("amount",)),
    "title lines": Messy(titled, "class", ("--skip", "3"), (), ("amount",)),
    "mixed case": Messy(mixed_case, "answer", ("--merge-case",)),
    "workbook": Messy(
        workbook, "class", ("--skip", "1"), ("others are 'Notes'",), ("amount",)
    ),
    "JSON lines": Messy(json_lines, "class", ("--ignore", "id"), (), ("amount",)),
    "500 columns": Messy(wide, "class", (), ("499 text columns",), ("amount", "x7")),
    "200,000 rows": Messy(long, "Ausfall", (), ("2 text columns",), ("Betrag", "Satz")),
}
FAST = {"german", "american", "mixed case", "dates"}
#: Tables whose numbers the exported program reads as they are written.
TEXTS = {"german", "american", "french", "swiss", "indian", "dates", "American dates"}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in FAST else [pytest.mark.slow])
        for name in TABLES
    ],
)
def test_a_messy_table_becomes_a_tree(name, tmp_path):
    messy = TABLES[name]
    path = messy.write(tmp_path, np.random.default_rng(1))
    model, exported = tmp_path / "model.json", tmp_path / "tree.py"
    fit = ("fit", path, "-t", messy.target, "-a", "cart", "--max-depth", "4")
    code, _, err = run(*fit, "-o", model, *messy.options)
    assert code == 0, err
    for note in messy.notes:
        assert note in err
    columns = json.loads(model.read_text("utf-8"))["schema"]["columns"]
    kinds = {column["name"]: column["kind"] for column in columns}
    assert all(kinds[name] == "numeric" for name in messy.numeric)
    kept = _reading(messy.options)
    scores = json.loads(output("evaluate", model, path, "--format", "json", *kept))
    assert scores["accuracy"] > 0.95
    output("export", model, "--to", "python", "-o", exported)
    if name in TEXTS:
        found = output("predict", model, path, *kept).split()[1:]
        predict = runpy.run_path(str(exported))["predict"]
        assert [str(predict(row)) for row in _cells(path)] == found


@pytest.mark.filterwarnings("default:.*text column")
def test_a_german_table_in_chunks(tmp_path):
    """The tree of the memory grows from a file that nobody cleaned."""
    messy = TABLES["german"]
    path = messy.write(tmp_path, np.random.default_rng(1))
    models = {name: tmp_path / f"{name}.json" for name in ("memory", "chunked")}
    for name, model in models.items():
        command = ("fit", path, "-t", messy.target, "-a", "cart", *messy.options)
        code, _, err = run(*command, "--engine", name, "-o", model)
        assert code == 0, err
    assert models["chunked"].read_bytes() == models["memory"].read_bytes()


@pytest.mark.filterwarnings("default:.*text column")
def test_a_table_in_chunks_and_in_a_database(tmp_path):
    """Both engines grow the tree of the memory from a file that nobody cleaned."""
    pytest.importorskip("duckdb")
    messy = TABLES["dates"]
    path = messy.write(tmp_path, np.random.default_rng(1))
    models = {name: tmp_path / f"{name}.json" for name in ("memory", "chunked", "sql")}
    fit = ("-t", messy.target, "-a", "cart", "--max-depth", "4", "--engine")
    for name in ("memory", "chunked"):
        command = ("fit", path, *fit, name, "-o", models[name], *messy.options)
        code, _, err = run(*command)
        assert code == 0, err
    assert models["chunked"].read_bytes() == models["memory"].read_bytes()
    kept = _reading(messy.options)
    found = [
        output("predict", models["chunked"], path, "--engine", engine, *kept)
        for engine in ("memory", "chunked")
    ]
    assert found[0] == found[1]
    with pytest.warns(UserWarning, match="read as"):
        table = read_table(path)
    database = in_duckdb(table, tmp_path / "t.duckdb")
    code, _, err = run(
        "fit", database, "--table", "t", *fit, "sql", "-o", models["sql"]
    )
    assert code == 0, err
    assert output("show", models["sql"]) == output("show", models["memory"])
    told = json.loads(
        output("evaluate", models["sql"], database, "--table", "t", "--format", "json")
    )
    assert told["accuracy"] > 0.95
    for target in ("python", "sql"):
        output("export", models["sql"], "--to", target, "-o", tmp_path / target)


def test_numbers_as_text_in_a_database_are_told(tmp_path):
    columns = {"x": [f"{at}.000,5 €" for at in range(1, 41)], "y": ["a", "b"] * 20}
    database = in_duckdb(columns, tmp_path / "t.duckdb")
    source = SqlTable(database, "t")
    with pytest.warns(BranchwiseWarning, match="Column 'x' has numbers as text, such"):
        fit_tree(source, "y", CART)
    as_names = SqlTable(database, "t", text_columns=["x"])
    with warnings.catch_warnings():
        warnings.simplefilter("error", BranchwiseWarning)
        warnings.simplefilter("ignore", FitWarning)
        fit_tree(as_names, "y", CART)


def test_addresses_are_no_files(tmp_path):
    database = in_duckdb({"x": [1, 2], "y": ["a", "b"]}, tmp_path / "t.duckdb")
    model = tmp_path / "m.json"
    assert run("fit", f"duckdb:///{database}", "--table", "t", "-t", "y", "-o", model)
    for subcommand in ("predict", "evaluate"):
        code, _, err = run(subcommand, model, f"duckdb:///{database}", "--table", "t")
        assert code == 2
        assert f"{subcommand} reads files. Got the address 'duckdb:" in err


def _reading(options: tuple[str, ...]) -> tuple[str, ...]:
    """Return the options that read rows for a model."""
    of_fit = {"--ignore", "--categorical"}
    skipped = {at + d for at, o in enumerate(options) if o in of_fit for d in (0, 1)}
    return tuple(o for at, o in enumerate(options) if at not in skipped)


def _cells(path: Path) -> list[dict[str, str | None]]:
    """Return the rows of a file as texts, as a program would read them."""
    text = path.read_text("utf-8-sig").splitlines()
    reader = csv.DictReader(text, delimiter=";" if ";" in text[0] else ",")
    return [
        {name: None if cell == "k.A." else cell for name, cell in row.items()}
        for row in reader
    ]
