"""Mutated files of text: each is read, or refused with an error that helps.

Run as a script for as many as wanted, in one process, reproducible by its seed:

    python tests/fuzz_files.py 200000

Anything but a table or a BranchwiseError, or more than some seconds, is printed with
the file that did it, and the exit code is 1.
"""

from __future__ import annotations

import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from branchwise import BranchwiseError, inspect_table, read_table

#: Seconds for one file.
LIMIT = 10

CSV = b"""outlook,temperature,windy,play
sunny,85,FALSE,no
"rainy, cold",64.5,TRUE,"y ""es"" "
overcast,?,FALSE,yes
'sunny',7e1,,no
"""
SEMICOLONS = (
    b"id;Gr\xc3\xb6\xc3\x9fe;when\r\n007;1.5;2020-01-02\r\n008;-2;2021-12-31\r\n"
)
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
#: File name -> content; a row of files that belong together.
SEEDS: list[dict[str, bytes]] = [
    {"t.csv": CSV},
    {"t.csv": SEMICOLONS},
    {"t.csv": BLANKS},
    {"t.tsv": CSV.replace(b",", b"\t")},
    {"t.csv": CSV.decode().encode("utf-16")},
    {"t.arff": ARFF},
    {"t.arff": ARFF},
    {"t.names": NAMES, "t.data": DATA},
    {"t.names": NAMES, "t.data": DATA},
]
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


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeoutError(f"more than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def try_one(number: int, folder: Path) -> str:
    """Make the file of a number, read it, and tell what came of it."""
    chance = random.Random(number)
    files = chance.choice(SEEDS)
    changed = chance.choice(list(files))
    for name, content in files.items():
        (folder / name).write_bytes(
            mutated(content, chance) if name == changed else content
        )
    options = {}
    if chance.random() < 0.1 and "t.names" not in files:
        options = {"encoding": chance.choice(("latin-1", "cp1252", "utf-16-le"))}
    if chance.random() < 0.1 and "t.csv" in files:
        options["header"] = False
    with time_limit(LIMIT):
        try:
            table = read_table(folder / next(iter(files)), **options)
            table.validate(full=True)
            inspect_table(table)
        except BranchwiseError as error:
            return "refused" if str(error).endswith((".", "?")) else "odd message"
    return "read"


def main(count: int, first: int = 0) -> int:
    done: Counter[str] = Counter()
    slowest = (0.0, 0)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for number in range(first, first + count):
            started = time.perf_counter()
            try:
                done[try_one(number, folder)] += 1
            except Exception:
                done["failed"] += 1
                print(f"file {number}:", file=sys.stderr)
                traceback.print_exc()
            slowest = max(slowest, (time.perf_counter() - started, number))
    print(f"{dict(done)}, slowest {slowest[0]:.2f} s (file {slowest[1]})")
    return 0 if done.keys() <= {"read", "refused"} else 1


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
