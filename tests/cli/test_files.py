"""The command line on files of every form and condition."""

from __future__ import annotations

import gzip
import inspect
import json
import os
import sqlite3
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from branchwise import datasets, load
from branchwise.cli.options import reading_options
from branchwise.files.options import FORMATS, Reading
from command_line import output, refusal, run, usage_error

WEATHER = Path(datasets.path("weather"))
NAMES = """Play, Don't Play.
outlook: sunny, overcast, rain.
humidity: continuous.
id: label.
"""
DATA = """sunny, 85, d1, Don't Play
sunny, 70, d2, Play
overcast, 65, d3, Play.
rain, 80, d4, Play
"""


@pytest.fixture
def write(tmp_path):
    def write(content, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_the_options_are_those_of_the_library():
    assert f"--from <{'|'.join(FORMATS)}>" in output("schema", "--help")
    options = inspect.signature(reading_options).parameters
    known = {field.name for field in fields(Reading) if field.compare}
    assert {name.replace("no_header", "header") for name in options} == known


@pytest.mark.parametrize(
    "verb",
    [
        "fit",
        "predict",
        "evaluate",
        "prune",
        "export",
        "schema",
        "rules",
        "steps",
        "explain",
        "what-if",
        "diff",
        "view",
    ],
)
def test_every_verb_that_reads_a_table_has_the_options(verb):
    text = output(verb, "--help")
    for option in (
        "--from",
        "--separator",
        "--encoding",
        "--no-header",
        "--names ",
        "--names-file",
        "--sheet",
        "--table",
        "--query",
        "--max-size",
    ):
        assert f"  {option}" in text
    assert "--from" not in output("show", "--help")


def test_a_tree_from_c45_files(write, tmp_path):
    write(NAMES, "golf.names")
    write(DATA, "golf.data")
    tree = tmp_path / "tree.json"
    output("fit", tmp_path / "golf", "-t", "class", "-a", "id3", "-o", tree)
    schema = load(tree).schema
    assert schema.names == ["outlook", "humidity"]
    assert schema.columns[0].categories == ("sunny", "overcast", "rain")
    same = output("fit", "-", "--names-file", tmp_path / "golf.names", "-t", "class",
                  "-a", "id3", "-q", stdin=DATA)  # fmt: skip
    assert same == output("show", tree)
    assert "accuracy 1.0000" in output("evaluate", tree, tmp_path / "golf.data")
    kept = output("predict", tree, tmp_path / "golf", "--keep", "-q").splitlines()
    assert kept[1] == "sunny,85,Don't Play,Don't Play"


def test_a_tree_from_rows_without_a_header(tmp_path):
    rows = WEATHER.read_text().partition("\n")[2]
    tree = tmp_path / "tree.json"
    output("fit", "-", "--no-header", "-t", "x4", "-o", tree, stdin=rows)
    assert load(tree).schema.names == ["x0", "x1", "x2", "x3"]
    assert "accuracy 1.0000" in output("evaluate", tree, "-", "--no-header", stdin=rows)
    names = "outlook,temperature,humidity,windy,play"
    named = output("fit", "-", "--names", names, "-t", "play", "-q", stdin=rows)
    assert named == output("fit", WEATHER, "-t", "play", "-q")


def test_a_first_line_that_looks_like_a_row(write):
    path = write("5.1,3.5,setosa\n6.3,-3e1,virginica\n")
    for verb in (["schema", path], ["fit", path, "-t", "setosa"]):
        assert (
            f"note: the first line of {path} has numbers for names: '5.1', '3.5'. If "
            "it is a row like the others, add --no-header.\n" in run(*verb)[2]
        )
    assert "first line" not in run("schema", path, "--no-header")[2]
    years = write("name,2020\nx,1\n")
    assert "first line" not in run("schema", years)[2]


def test_a_tree_from_a_database_a_packed_file_and_arff(tmp_path, write):
    path = tmp_path / "data.sqlite"
    header, *rows = [line.split(",") for line in WEATHER.read_text().splitlines()]
    with sqlite3.connect(path) as connection:
        connection.execute(f"create table days ({','.join(header)})")
        marks = ",".join("?" * len(header))
        numbers = [[int(c) if c.isdigit() else c for c in row] for row in rows]
        connection.executemany(f"insert into days values ({marks})", numbers)
        connection.execute("create table other (a)")
    connection.close()
    expected = output("fit", WEATHER, "-t", "play", "-q")
    query = "select * from days"
    for options in (["--table", "days"], ["--query", query]):
        assert output("fit", path, "-t", "play", "-q", *options) == expected
    assert "say what to read with --table or --query" in refusal(
        "fit", path, "-t", "play", code=2
    )
    packed = write(gzip.compress(WEATHER.read_bytes()), "w.csv.gz")
    assert output("fit", packed, "-t", "play", "-q") == expected
    assert "has more than 100 bytes" in refusal(
        "fit", packed, "-t", "play", "--max-size", "100"
    )
    arff = write(
        "@relation w\n@attribute outlook {sunny, overcast, rainy}\n"
        "@attribute temperature numeric\n@attribute humidity numeric\n"
        "@attribute windy {TRUE, FALSE}\n@attribute play {yes, no}\n@data\n"
        + "\n".join(",".join(row) for row in rows),
        "w.arff",
    )
    lines = output("fit", arff, "-t", "play", "-q").splitlines()
    assert [line.split(" (")[0] for line in lines if line[0] != "|"] == [
        "outlook = sunny:",
        "outlook = overcast: yes",
        "outlook = rainy:",
    ]


def test_further_tables_take_the_options_that_fit(write):
    train = write("a;b;y\n1;x;p\n2;z;q\n1;x;p\n2;z;q\n", "t.csv")
    more = write("a;b;y\n1;x;p\n2;z;q\n", "v.csv")
    fit = ["fit", train, "-t", "y", "--separator", ";", "-q"]
    pruning = ["--pruning", "reduced-error", "--validation", more]
    assert output(*fit, *pruning) == output(*fit)


def test_options_that_have_no_table_to_read(tmp_path):
    tree = tmp_path / "tree.json"
    output("fit", WEATHER, "-t", "play", "-o", tree)
    prune = ["prune", tree, "--method", "error-based", "--separator", ","]
    assert "have no effect without a table. Give the table as --data" in refusal(
        *prune, code=2
    )
    export = ["export", tree, "--to", "json-rules", "--no-header"]
    assert "Give the table as --verify" in refusal(*export, code=2)
    assert "--sheet has no effect on" in refusal("schema", WEATHER, "--sheet=1", code=2)
    assert "'pickle' is not one of 'csv', 'tsv'" in usage_error(
        "schema", WEATHER, "--from", "pickle"
    )


CUSTOMERS = "id,plan,code,end,note,buys\n" + "".join(
    f"C{n:03},{('basic', 'pro', 'pro')[n % 3]},{1 + (n % 3 > 0)},"
    f"{'' if n % 4 else '2024-01-01'},same,{'no' if n % 4 else 'yes'}\n"
    for n in range(60)
)


def test_warnings_of_schema(write):
    path = write(CUSTOMERS)
    text = output("schema", path, "-t", "buys").partition("\n\n")[2]
    assert text == (
        "warning: column 'end' determines the class by whether it is missing. If it is "
        "derived from the class, or known only after it, leave it out with --ignore "
        "end.\n"
        "warning: column 'id' looks like an identifier: every row has a different "
        "value. A tree would split on it, but new rows have other values: leave it out "
        "with --ignore id.\n"
        "warning: column 'note' has the same value in every row. No tree can split on "
        "it: leave it out with --ignore note.\n"
        "warning: column 'end' is missing in 45 of 60 rows (75 %). Check how missing "
        "values are treated, or leave it out with --ignore end.\n"
        "warning: columns 'plan' and 'code' hold the same information: their values "
        "correspond in all rows. Importances would be divided between them "
        "arbitrarily: leave one out with --ignore code.\n"
    )
    document = json.loads(output("schema", path, "-t", "buys", "--format", "json"))
    assert document["warnings"][0] == {
        "kind": "leak",
        "columns": ["end"],
        "message": "Column 'end' determines the class by whether it is missing.",
        "advice": "If it is derived from the class, or known only after it, leave it "
        "out.",
    }
    without = output("schema", path, "--ignore", "id,end,note,code", "-q")
    assert "warning" not in without
    assert "Did you mean 'buys'?" in refusal("schema", path, "-t", "buy")
    gone = output("schema", path, "-t", "buys", "--ignore", "buys", "-q")
    assert "decides the class" not in gone


def test_fit_notes_only_what_spoils_a_tree(write):
    path = write(CUSTOMERS)
    code, _, err = run("fit", path, "-t", "buys")
    notes = [line for line in err.splitlines() if line.startswith("note: column")]
    assert code == 0
    assert [note.split()[2] for note in notes] == ["'id'", "'end'"]
    assert run("fit", path, "-t", "buys", "--quiet")[2] == ""
    regression = ["-t", "code", "-a", "cart", "--regression"]
    assert "decides the class" not in run("fit", path, *regression)[2]


def test_hundreds_of_numbers_as_classes(write, tmp_path):
    path = write("a,price\n" + "".join(f"{k % 7},{k}\n" for k in range(200)))
    tree = tmp_path / "tree.json"
    assert refusal("fit", path, "-t", "price", "-o", tree) == (
        f"The target 'price' of {path} has 200 different numbers, and each would be a "
        "class. Predict the numbers themselves with --algorithm cart --regression; or, "
        "if they are names, say so with --categorical price."
    )
    assert not tree.exists()
    output("fit", path, "-t", "price", "--categorical", "price")
    output("fit", path, "-t", "price", "-a", "cart", "--regression")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", "is empty"),
        ("a.csv", b"a,y\n1,2,3\n", "has 3 cells in line 2"),
        ("a.csv", b"a,y\n1,\xe9\n", "is not UTF-8 text: see line 2, column 3"),
        ("a.csv", b"a,a,y\n1,2,3\n", "more than one column named 'a'"),
        ("a.csv", b"a,y\n1,2\na,y\n", "has its header once more in line 3"),
        ("a.csv", b'a,y\n1,2\n3,"4\n5,6\n', "in line 3, column 3 that is never closed"),
        ("a.csv", b"a,y\n1,\x002\n", "has a NUL byte in line 2, column 3"),
        ("a.csv", b"\x89PNG\r\n\x1a\n", "is a PNG picture, not a table"),
        (
            "a.csv",
            gzip.compress(b"a,y\n" * 99, mtime=0)[:-9],
            "is truncated: the compressed data",
        ),
        ("a.arff", b"@relation r\n@attribute", "lacks the name of an attribute"),
        ("a.parquet", b"PAR1", "is not a whole Parquet file"),
    ],
)
def test_bad_files(write, tmp_path, name, content, message):
    path = write(content, name)
    tree = tmp_path / "tree.json"
    for verb in (["fit", path, "-t", "y", "-o", tree], ["schema", path]):
        assert message in refusal(*verb)
    assert sorted(tmp_path.iterdir()) == [path]


def test_a_directory_and_a_file_without_permission(tmp_path, write):
    assert "is a directory" in refusal("schema", tmp_path)
    path = write("a\n1\n")
    path.chmod(0)
    if not os.access(path, os.R_OK):  # root may read all
        assert "cannot be read: Permission denied" in refusal("schema", path)


def test_a_long_pipe_that_is_cut_off(tmp_path):
    """A writer dies within a quoted cell; memory is not taken for all that came."""
    code = (
        "import sys; from branchwise.files import raw_bytes as contents\n"
        "contents._IN_MEMORY = 2**16\n"
        "from branchwise.cli.main import main; main()"
    )
    rows = b"a,y\n" + b'"some words",1\n' * 200_000 + b'"some'
    tree = tmp_path / "tree.json"
    done = subprocess.run(
        [sys.executable, "-c", code, "fit", "-", "-t", "y", "-o", tree],
        input=rows,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == b""
    assert done.stderr.startswith(
        b"error: standard input is truncated: it ends in line 200,002, column 5, with "
        b"1 of the 2 cells that its header has. Get the whole file, or take that "
        b"line out."
    )
    assert not tree.exists()
