"""Values that differ only in case or surrounding whitespace: Ja, ja and JA."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from branchwise.data.arrow import (
    as_dictionary,
    dictionary_codes,
    from_array,
    pa,
    sorted_dictionary,
)
from branchwise.data.table_schema import Value


def folded(text: str) -> str:
    """Return what spellings of a value have in common."""
    return text.strip().casefold()


def spellings(values: Iterable[Value]) -> list[list[str]]:
    """Return the groups of texts that differ only in case or whitespace around them."""
    groups: dict[str, list[str]] = {}
    for value in values:
        if isinstance(value, str):
            groups.setdefault(folded(value), []).append(value)
    return [group for group in groups.values() if len(group) > 1]


def known_spelling(text: str, known: Iterable[Value]) -> str:
    """Return the known text that differs only in case or whitespace, if there is."""
    texts = [value for value in known if isinstance(value, str)]
    alike = [value for value in texts if folded(value) == folded(text)]
    return alike[-1] if alike and text not in texts else text


def chosen_spellings(counted: Mapping[str, int]) -> dict[str, str]:
    """Return the spelling of each value, by what all of them have in common.

    It is the most frequent one, of several the first in sorted order, without the
    whitespace around it. ``counted`` is how often a text occurs.
    """
    total: dict[str, int] = {}
    for text, n_cells in counted.items():
        plain = text.strip() or text
        total[plain] = total.get(plain, 0) + n_cells
    chosen: dict[str, str] = {}
    for text in sorted(total, key=lambda text: (-total[text], text)):
        chosen.setdefault(folded(text), text)
    return chosen


def merged_spellings(column: Any, known: Sequence[Value] = ()) -> Any:
    """Give one spelling to texts that differ only in case or whitespace around them.

    It is the one among ``known`` values if there is, else the most frequent one, of
    several the first in sorted order, without the whitespace. ``column`` is a text
    column of Arrow.
    """
    array = as_dictionary(column)
    texts: list[str] = array.dictionary.to_pylist()
    codes = dictionary_codes(array.indices)
    times = np.bincount(codes[codes >= 0], minlength=len(texts)).tolist()
    exact = {value for value in known if isinstance(value, str)}
    counted = dict(zip(texts, times, strict=True))
    chosen = chosen_spellings(counted)
    chosen |= {folded(value): value for value in known if isinstance(value, str)}
    wanted = [text if text in exact else chosen[folded(text)] for text in texts]
    if wanted == texts:
        return column
    values = list(dict.fromkeys(wanted))
    position = {text: code for code, text in enumerate(values)}
    recode = np.array([position[text] for text in wanted], dtype=np.int32)
    merged = pa.DictionaryArray.from_arrays(
        from_array(recode).take(array.indices), pa.array(values, pa.string())
    )
    return sorted_dictionary(pa.chunked_array([merged]))
