"""Text that may be shown anywhere: what does not print becomes an escape.

Names and values come from tables and from model files. A line break, an escape sequence
of a terminal or a direction mark among them could forge a line or disguise another.
"""

from __future__ import annotations

import json


def plain(text: str) -> str:
    """Show characters that do not print as escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def json_text(
    document: object, indent: int | None = None, allow_nan: bool = True
) -> str:
    """Write plain values as JSON, characters that do not print as escapes of JSON."""
    written = json.dumps(
        document, ensure_ascii=False, allow_nan=allow_nan, indent=indent
    )
    return "\n".join(map(_escaped, written.split("\n")))


def _escaped(line: str) -> str:
    # Outside of texts JSON is ASCII, so that what does not print is part of a text.
    if line.isprintable():
        return line
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in line)
