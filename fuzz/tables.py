"""Mutated tables of every format: each is read, or refused with an error that helps.

    python fuzz/tables.py --n 50000 --seed 0

The tables are numbered from the seed on, and each is made from its number alone. They
are read in child processes with limits of memory and time, so that a crash, a hang or
exhausted memory is a finding like any other exception. A finding is printed with its
number: ``--n 1 --seed NUMBER`` makes it again. The exit code is 1 if there is any.
"""

from __future__ import annotations

import argparse
import gzip
import io
import random
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Timer

import duckdb
import openpyxl
import pyarrow as pa
from pyarrow import feather, ipc, parquet

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / "tests/helpers")]

import workbooks
from branchwise import BranchwiseError, BranchwiseWarning, inspect_table, read_table
from limits import time_limit

#: Seconds for one table, and bytes of memory for a child beside what it has.
LIMIT = 20
#: Seconds for a part of the campaign, which native code that hangs would exceed.
SILENCE = 900
MEMORY = 2 * 2**30
#: What a table may have when it is read.
MOST_BYTES = 20_000_000
#: Tables that a child reads.
BATCH = 500

CSV = b"""outlook,temperature,windy,play
sunny,85,FALSE,no
"rainy, cold",64.5,TRUE,"y ""es"" "
overcast,?,FALSE,yes
'sunny',7e1,,no
"""
SEMICOLONS = (
    b"id;Gr\xc3\xb6\xc3\x9fe;when\r\n007;1.5;2020-01-02\r\n008;-2;2021-12-31\r\n"
)
NUMBERS = (
    "betrag;satz;kunden;ja\n1.250,50 €;4,39 %;1 234;Ja\n(900);12 %;5 678;ja\n"
).encode()
JSON_LINES = b'{"a": 1, "b": "x"}\n{"b": "y", "c": true}\n{"a": 9007199254740993}\n'
BLANKS = b"a b   c\n1 2 3\n  4 5 6  \n"
ARFF = b"""% comment
@relation 'my weather'
@attribute outlook {sunny, 'over cast', rainy}
@attribute "the temperature" numeric
@attribute note string
@attribute day date "yyyy-MM-dd"
@attribute play {yes, no}
@data
sunny,85,'it\\'s "hot"',2020-01-02,no
'over cast', ?, ?, '2020-01-03', yes % end
{0 rainy, 1 3, 2 "x\\u0041", 3 2020-01-04, 4 no}
rainy,70,plain,?,yes
"""
NAMES = b"""| classes
yes, no.

outlook: sunny, over\\,cast, rain.   | a comment
temperature: continuous.
code: discrete 5.
id: label.
grade: [ordered] low, mid, high.
skipped: ignore.
"""
DATA = b"""sunny, 85, a, 1, low, x, no.
over\\,cast, ?, b, 2, high, y, yes | comment
rain,70.5,a,3,mid,z,yes
"""


def arrow_table() -> pa.Table:
    """Return a small table of many types."""
    return pa.table(
        {
            "n": [1, None, 3, 4] * 5,
            "f": [0.5, 2.0, None, -1.0] * 5,
            "t": ["b", "a", None, "\u00e9"] * 5,
            "b": [True, None, False, True] * 5,
            "d": pa.array(["x", "y", "x", None] * 5).dictionary_encode(),
            "o": pa.DictionaryArray.from_arrays(
                pa.array([1, 0, None, 1] * 5, pa.int8()), ["low", "high"], ordered=True
            ),
        }
    )


def parquet_bytes() -> bytes:
    """Return the table as Parquet."""
    stream = io.BytesIO()
    parquet.write_table(arrow_table(), stream, row_group_size=7)
    return stream.getvalue()


def feather_bytes(compression: str) -> bytes:
    """Return the table as an Arrow file."""
    stream = io.BytesIO()
    feather.write_feather(arrow_table(), stream, compression=compression)
    return stream.getvalue()


def stream_bytes() -> bytes:
    """Return the table as an Arrow stream."""
    stream = io.BytesIO()
    with ipc.new_stream(stream, arrow_table().schema) as writer:
        writer.write_table(arrow_table(), max_chunksize=7)
    return stream.getvalue()


def workbook_bytes() -> bytes:
    """Return a workbook of two sheets."""
    book = openpyxl.Workbook()
    for row in (["n", "t", "b"], [1, "x", True], [2.5, None, False], ["y", "z", None]):
        book.active.append(row)
    book.create_sheet("other").append(["a"])
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def old_workbook_bytes() -> bytes:
    """Return a workbook in the format before 2007."""
    texts = workbooks.text_at(0, 0, "n") + workbooks.text_at(0, 1, "t")
    row = workbooks.number_at(1, 0) + workbooks.text_at(1, 1, "x")
    return workbooks.old_workbook(texts + row + workbooks.number_at(2, 0, 7.0))


def binary_workbook_bytes() -> bytes:
    """Return a workbook in binary records."""
    cells = workbooks.binary_row(0)
    cells += workbooks.binary_text(0, "n") + workbooks.binary_text(1, "t")
    cells += workbooks.binary_row(1)
    cells += workbooks.binary_number(0, 1.5) + workbooks.binary_text(1, "x")
    return workbooks.binary_workbook(cells)


def open_document_bytes() -> bytes:
    """Return a workbook in the OpenDocument format."""
    value = workbooks.VALUE.format("")
    twice = workbooks.VALUE.format('table:number-columns-repeated="2"')
    head = "".join(workbooks.TEXT.format(name) for name in "abc")
    rows = [workbooks.ROW.format("", cells) for cells in (head, twice + value)]
    repeated = workbooks.ROW.format('table:number-rows-repeated="3"', value)
    return workbooks.open_document("".join((*rows, repeated)))


def database_bytes(form: str) -> bytes:
    """Return a database with a table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t"
        connect = sqlite3.connect if form == "sqlite" else duckdb.connect
        connection = connect(str(path))
        connection.execute("create table t (a integer, b varchar, c double)")
        connection.execute("insert into t values (1, 'x', 0.5), (2, null, 1e9)")
        connection.execute("create view v as select a + 1 as a, b from t")
        connection.commit()
        connection.close()
        return path.read_bytes()


@cache
def seeds() -> list[dict[str, bytes]]:
    """Return files that belong together, by name; the first one is read."""
    return [
        {"t.csv": CSV},
        {"t.csv": SEMICOLONS},
        {"t.csv": NUMBERS},
        {"t.jsonl": JSON_LINES},
        {"t.csv": BLANKS},
        {"t.tsv": CSV.replace(b",", b"\t")},
        {"t.csv": CSV.decode().encode("utf-16")},
        {"t.arff": ARFF},
        {"t.names": NAMES, "t.data": DATA},
        {"t.csv": gzip.compress(CSV)},
        {"t.csv": pa.compress(CSV, "zstd", asbytes=True)},
        {"t.parquet": parquet_bytes()},
        {"t.feather": feather_bytes("uncompressed")},
        {"t.feather": feather_bytes("zstd")},
        {"t.arrows": stream_bytes()},
        {"t.xlsx": workbook_bytes()},
        {"t.sqlite": database_bytes("sqlite")},
        {"t.duckdb": database_bytes("duckdb")},
        {"t.xls": old_workbook_bytes()},
        {"t.xlsb": binary_workbook_bytes()},
        {"t.ods": open_document_bytes()},
    ]


#: Those of text, which are quick.
N_TEXT = 9

TOKENS = [
    *(bytes([byte]) for byte in b"\0\t\n\r \"'%{},;|\\:.?@[]\x80\xff"),
    b"\r\n",
    b'""',
    b"@data",
    b"@attribute a numeric\n",
    b"@relation",
    b"{0 1}",
    b"continuous",
    b"discrete",
    b"\\u00",
    b"nan",
    b"inf",
    b"-",
    b"1e999",
    b"99999999999999999999",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\x1f\x8b",
    b"\xf0\x9f\x98\x80",
]


def mutated(content: bytes, chance: random.Random) -> bytes:
    """Change a file in a few places."""
    data = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 3, 5, 10))):
        at = chance.randrange(len(data) + 1)
        end = min(len(data), at + chance.choice((1, 2, 5, 20, 80)))
        way = chance.randrange(8)
        if way == 0:
            del data[at:end]
        elif way == 1:
            data[at:at] = chance.choice(TOKENS)
        elif way == 2:
            data[at:end] = chance.choice(TOKENS)
        elif way == 3:
            data[at:at] = data[at:end] * chance.choice((1, 2, 30))
        elif way == 4 and at < len(data):
            data[at] = chance.randrange(256)
        elif way == 5 and chance.random() < 0.3:
            del data[at:]
        elif way == 6:
            data[at:at] = chance.choice(TOKENS) * chance.choice((2, 100, 3000))
        elif way == 7:
            lines = bytes(data).split(b"\n")
            chance.shuffle(lines)
            data = bytearray(b"\n".join(lines))
    return bytes(data)


def mutated_members(content: bytes, chance: random.Random) -> bytes:
    """Change one member of a zip archive, whose check sums are right again."""
    stream = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as archive,
        zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as made,
    ):
        names = archive.namelist()
        chosen = chance.choice(names)
        for name in names:
            data = archive.read(name)
            made.writestr(name, mutated(data, chance) if name == chosen else data)
    return stream.getvalue()


def mutated_packed(content: bytes, chance: random.Random) -> bytes:
    """Change what is in a packed file."""
    if content.startswith(b"\x1f\x8b"):
        return gzip.compress(mutated(gzip.decompress(content), chance))
    return mutated(content, chance)


def flipped(content: bytes, chance: random.Random) -> bytes:
    """Change single bytes, so that lengths stay."""
    data = bytearray(content)
    for _ in range(chance.choice((1, 2, 4, 16))):
        data[chance.randrange(len(data))] = chance.choice(
            (0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256))
        )
    return bytes(data)


def changed(content: bytes, chance: random.Random) -> bytes:
    """Change a file in a way that goes with its format."""
    ways: list[Callable[[bytes, random.Random], bytes]] = [mutated, flipped]
    if content.startswith(b"PK"):
        ways += [mutated_members] * 3
    if content.startswith(b"\x1f\x8b"):
        ways.append(mutated_packed)
    return chance.choice(ways)(content, chance)


def try_one(number: int, folder: Path, n_seeds: int | None = None) -> str:
    """Make the table of a number, read it, and tell what came of it."""
    chance = random.Random(number)
    files = chance.choice(seeds()[:n_seeds])
    wanted = chance.choice(list(files))
    for name, content in files.items():
        made = changed(content, chance) if name == wanted else content
        (folder / name).write_bytes(made)
    first = next(iter(files))
    options: dict[str, object] = {"max_size": MOST_BYTES}
    if chance.random() < 0.1:
        marks = {"decimal": chance.choice(".,"), "merge_case": True}
        options |= marks | ({"skip": 1} if first.endswith(".csv") else {})
    if chance.random() < 0.1 and first in ("t.csv", "t.tsv", "t.arff"):
        options["encoding"] = chance.choice(("latin-1", "cp1252", "utf-16-le"))
    if chance.random() < 0.1 and first == "t.csv":
        options["header"] = False
    if first in ("t.sqlite", "t.duckdb"):
        options["table"] = chance.choice(("t", "v"))
    with time_limit(LIMIT), warnings.catch_warnings():
        # Texts that are read as numbers.
        warnings.simplefilter("ignore", BranchwiseWarning)
        try:
            table = read_table(folder / first, **options)
            table.validate(full=True)
            with suppress(BranchwiseError):  # of dates and the like
                inspect_table(table)
        except BranchwiseError as error:
            return "refused" if str(error).endswith((".", "?")) else "odd message"
    return "read"


def limit_memory(folder: Path) -> None:
    """Let this process have little more memory than it has.

    Arrow and DuckDB reserve gigabytes of addresses at the start, which they do not use;
    so every format is read once before.
    """
    for files in seeds():
        for name, content in files.items():
            (folder / name).write_bytes(content)
        first = next(iter(files))
        is_database = first in ("t.sqlite", "t.duckdb")
        read_table(folder / first, table="t" if is_database else None)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def read_some(first: int, count: int) -> None:
    """Read tables as a child does: tell each before it is read, and after."""
    with tempfile.TemporaryDirectory() as place:
        limit_memory(Path(place))
        for number in range(first, first + count):
            print(number, end=" ", flush=True)
            try:
                outcome = try_one(number, Path(place))
            except BaseException:
                traceback.print_exc()
                outcome = "failed"
            print(outcome, flush=True)


def child(first: int, count: int) -> tuple[list[str], int, str]:
    """Let a child read tables; return what it told, its exit code and its errors."""
    command = [sys.executable, __file__, "--child", str(first), str(count)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        # A hang in native code hears no alarm.
        timer = Timer(SILENCE, process.kill)
        timer.start()
        told, errors = process.communicate()
        timer.cancel()
    return told.splitlines(), process.returncode, errors


def campaign(count: int, seed: int) -> Counter[str]:
    """Read many tables, and print what must not be."""
    done: Counter[str] = Counter()
    number, end = seed, seed + count
    while number < end:
        told, code, errors = child(number, min(BATCH, end - number))
        outcomes = [line.split(" ", 1) for line in told]
        whole = [entry for entry in outcomes if len(entry) == 2 and entry[1]]
        done.update(outcome for _, outcome in whole)
        number += len(whole)
        failed = [name for name, outcome in whole if outcome not in ("read", "refused")]
        if failed or code:
            print(f"tables {failed}, exit code {code}:\n{errors[-3000:]}", flush=True)
        if code:
            print(f"table {number} ended the process", flush=True)
            done["crashed"] += 1
            number += 1
    return done


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", type=int, nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        read_some(*given.child)
        return 0
    started = time.monotonic()
    done = campaign(given.n, given.seed)
    print(f"{dict(done)} in {time.monotonic() - started:.0f} s")
    return 0 if done.keys() <= {"read", "refused"} else 1


if __name__ == "__main__":
    sys.exit(main())
