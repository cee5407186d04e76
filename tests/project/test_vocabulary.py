"""The words of the field: retired words are neither in names nor in texts."""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

#: Word -> what to say instead, in names, comments, docstrings, messages and pages.
RETIRED = {
    "afield": "remote",
    "answer answers answered answering": "prediction, predicted, leaf value, result",
    "ask asks asked asking": "split on, require, request",
    "blanks": "whitespace",
    "chance chances": "probability, p-value",
    "contender contenders": "candidate",
    "crew": "thread pool, executor",
    "cut cuts cutting": "threshold, split, truncate",
    "deal deals dealt": "fold, split",
    "elsewhere": "remote, in another module",
    "facts": "summary statistics",
    "gap gaps": "missing value, spacing, difference",
    "lever levers": "feature domain",
    "luck lucky": "p-value",
    "mass masses": "weighted impurity",
    "min_significance": "max_p_value",
    "muster": "start",
    "narrow narrowed narrows": "downcast, restrict",
    "nobody somebody": "a plain subject",
    "packed unpacked": "compressed, serialised",
    "parted": "split, partitioned",
    "predicts_numbers": "is_regression",
    "question questions": "split",
    "refuse_ _refuse": "check_, validate_",
    "reply replies": "prediction, outcome",
    "shelf shelves": "cache",
    "snip snips snipped": "collapse",
    "stranger strangers strange": "unseen category",
    "surgery": "edit",
    "twin twins": "native implementation",
    "verb verbs": "subcommand",
    "vigil": "interrupt check",
    "vow vows": "guarantee",
    "wish wishes": "constraint",
}
#: Words that are retired as names, though texts may have them in their usual sense.
RETIRED_NAMES = {
    "far": "remote",
    "form forms": "format",
    "look": "scan",
    "part parts": "chunk, section, piece",
    "place places": "source, position",
    "price prices": "cost, alpha",
    "room": "cache size, space",
    "settle": "finalise",
    "tried": "trials",
}
#: Where a word is not ours: keys of model files, names of other programs.
ALLOWED = {
    "src/branchwise/files/table_paths.py": {"parts"},  # of pathlib.Path
    "src/branchwise/tree/tree.py": {"cut", "answer"},
    "src/branchwise/model_file/reader.py": {"answer", "cut"},
    "src/branchwise/recipe/parameters.toml": {"cut", "cuts", "min_significance"},
    # Text of exported code, which stays byte for byte the same.
    "src/branchwise/export/onnx.py": {"answered"},
    "src/branchwise/export/onnx_graph.py": {"answered"},
    "src/branchwise/export/sql.py": {"answers"},
    "src/branchwise/export/sql_query.py": {"answers", "replies", "reply"},
    "src/branchwise/export/templates/ensemble.c": {"chances"},  # an array of tree.c
    "src/branchwise/export/templates/tree.c": {
        *("answer", "answers", "asks", "chances"),
        "gap",  # of Shell's sort
    },
    "src/branchwise/export/templates/tree.js": {
        *("answer", "answers", "chance", "chances"),
    },
    "src/branchwise/export/templates/tree.py.txt": {
        *("answer", "answers", "chance", "chances"),
    },
    "docs/export_onnx.md": {"answered"},
    "docs/export_sql.md": {"answers"},
    "docs/model_file.md": {"cut", "cuts", "answer", "min_significance"},
}


def _by_word(table: dict[str, str]) -> dict[str, str]:
    return {word: say for words, say in table.items() for word in words.split()}


WORDS = _by_word(RETIRED)
NAMES = WORDS | _by_word(RETIRED_NAMES)
_WORD = re.compile(r"[A-Za-z]+(?:_[a-z]+)*_?")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def words_of(text: str) -> Iterator[str]:
    """Yield the words of a text, those that underscores and capitals join as well."""
    for found in _WORD.findall(text):
        yield found.lower()
        if "_" in found or _HUMP.search(found):
            yield from re.split(r"_+", _HUMP.sub("_", found).lower())


def pieces(path: Path) -> Iterator[tuple[int, str, dict[str, str]]]:
    """Yield line numbers, texts or names, and the words that are retired there."""
    source = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        for number, line in enumerate(source.splitlines(), 1):
            yield number, line, WORDS
        return
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME:
            yield token.start[0], token.string, NAMES
        elif token.type in (tokenize.STRING, tokenize.COMMENT):
            for offset, line in enumerate(token.string.split("\n")):
                yield token.start[0] + offset, line, WORDS


def found_in(path: Path) -> list[str]:
    """Return the retired words of a file, with what to say instead."""
    name = path.relative_to(ROOT).as_posix()
    allowed = ALLOWED.get(name, set())
    return [
        f"{name}:{number}: {word!r}; say {retired[word]}"
        for number, text, retired in pieces(path)
        for word in words_of(text)
        if word in retired and word not in allowed
    ]


TEMPLATES = [
    path
    for folder in ("templates", "help")
    for path in (ROOT / "src/branchwise").glob(f"*/{folder}/*")
]
FILES = [
    *sorted({*(ROOT / "src").rglob("*.py"), *TEMPLATES}),
    *sorted((ROOT / "src").rglob("*.toml")),
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "README.md",
]


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_no_retired_word(path):
    assert found_in(path) == []


def test_retired_words_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    path = tmp_path / "module.py"
    path.write_text('def at_price(x):\n    """Return the answer."""\n', "utf-8")
    assert found_in(path) == [
        "module.py:1: 'price'; say cost, alpha",
        "module.py:2: 'answer'; say prediction, predicted, leaf value, result",
    ]


if __name__ == "__main__":
    named = [Path(argument).resolve() for argument in sys.argv[1:]]
    for one in named or FILES:
        inside = [one] if one.is_file() else sorted(one.rglob("*.py"))
        print("\n".join(line for path in inside for line in found_in(path)))
