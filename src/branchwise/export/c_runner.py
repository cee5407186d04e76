"""Running an export to C: a program around it that reads rows and writes answers.

Both are files of plain memory: a number as 8 bytes, a boolean as an int, a text as its
length (-1 if missing) and its bytes; an answer as an int and the doubles.
"""

from __future__ import annotations

import shutil
import struct
from collections.abc import Iterator, Sequence

from branchwise.errors import ExportError
from branchwise.export.answers import Answer
from branchwise.export.plan import Cell, Field, Plan, Row
from branchwise.export.spelling import identifiers
from branchwise.export.target import Options, Runner, run_in_folder

_FLAGS = ("-std=c99", "-ffp-contract=off")
#: Bytes of an export from which compiling takes longer than what -O1 saves.
_LARGE = 300_000

_DRIVER = """\
#include <stdio.h>
#include <stdlib.h>
#include "exported_tree.c"

static int take(void *to, size_t size, FILE *from)
{
    return fread(to, 1, size, from) == size;
}

static char *take_text(FILE *from)
{
    int size;
    char *text;
    if (!take(&size, sizeof size, from) || size < 0) return NULL;
    text = (char *)malloc((size_t)size + 1);
    if (text == NULL || !take(text, (size_t)size, from)) abort();
    text[size] = 0;
    return text;
}

int main(void)
{
    FILE *rows = fopen("rows", "rb"), *answers = fopen("answers", "wb");
    int n = 0;
    if (rows == NULL || answers == NULL || !take(&n, sizeof n, rows)) return 2;
    (void)take_text;
    while (n-- > 0) {
        struct @p@_row row = @p@_missing_row;
        double numbers[@numbers@] = {0};
        int label;
@take@
        label = @p@_predict(&row, numbers);
        fwrite(&label, sizeof label, 1, answers);
        fwrite(numbers, sizeof numbers, 1, answers);
@free@
    }
    fclose(rows);
    return fclose(answers) ? 2 : 0;
}
"""


def compiler() -> str | None:
    """Return where a C compiler is."""
    found = (shutil.which(name) for name in ("cc", "gcc", "clang"))
    return next((path for path in found if path), None)


def _absent() -> str | None:
    return None if compiler() else "there is no C compiler here (cc, gcc, clang)"


def runner(options: Options) -> Sequence[Runner]:
    """Return the way to run what was written with some options."""

    def run(content: bytes, plan: Plan, rows: Sequence[Row]) -> Sequence[Answer]:
        flags = (*_FLAGS, "-O1" if len(content) < _LARGE else "-O0")
        return compile_and_run(content, plan, rows, options["name"], flags)

    return [Runner("a compiled C program", _absent, run)]


def compile_and_run(
    content: bytes, plan: Plan, rows: Sequence[Row], prefix: str, flags: Sequence[str]
) -> list[Answer]:
    """Compile an export with its driver, run it, and return the answers."""
    files = {
        "exported_tree.c": content,
        "driver.c": _driver(plan, prefix).encode(),
        "rows": _packed(plan, rows),
    }
    # The folder is where programs start, and "." is not where they are looked for.
    commands = [
        [compiler() or "cc", *flags, "driver.c", "-o", "driver", "-lm"],
        ["./driver"],
    ]
    return list(_answers(run_in_folder(commands, files, result="answers"), plan))


def _driver(plan: Plan, prefix: str) -> str:
    take, free = [], []
    names = identifiers(field.name for field in plan.fields)
    for field, name in zip(plan.fields, names, strict=True):
        if field.kind == "text":
            take.append(f"row.{name} = take_text(rows);")
            free.append(f"free((void *)row.{name});")
        else:
            take.append(f"if (!take(&row.{name}, sizeof row.{name}, rows)) return 3;")
    indent = " " * 8
    return (
        _DRIVER.replace("@take@", "\n".join(indent + line for line in take))
        .replace("@free@", "\n".join(indent + line for line in free))
        .replace("@numbers@", str(max(1, len(plan.classes))))
        .replace("@p@", prefix)
    )


def _packed(plan: Plan, rows: Sequence[Row]) -> bytes:
    cells = (_cell(f, c) for row in rows for f, c in zip(plan.fields, row, strict=True))
    return struct.pack("=i", len(rows)) + b"".join(cells)


def _cell(field: Field, cell: Cell) -> bytes:
    if field.kind == "number":
        return struct.pack("=d", float("nan") if cell is None else float(cell))
    if field.kind == "boolean":
        return struct.pack("=i", -1 if cell is None else int(cell))
    if cell is None:
        return struct.pack("=i", -1)
    try:
        text = str(cell).encode()
    except UnicodeEncodeError:
        text = b"\0"
    if b"\0" in text:
        raise ExportError(
            f"Column {field.name!r} has the value {cell!r} in a row, and no text of C "
            "can be that: it has a NUL, or is no valid Unicode. Leave such rows out."
        )
    return struct.pack("=i", len(text)) + text


def _answers(content: bytes, plan: Plan) -> Iterator[Answer]:
    form = struct.Struct(f"=i{max(1, len(plan.classes))}d")
    for label, *numbers in form.iter_unpack(content):
        if label < 0:
            yield None
        elif plan.predicts_numbers:
            yield numbers[0], ()
        else:
            yield plan.classes[label], tuple(numbers)
