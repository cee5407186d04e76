"""Things of any size as rows of a table of bytes, and back.

Engines that keep their parts in tables of another system cut them into pages: such
systems move rows in batches of so many, whatever their size, and a batch must not
outgrow the memory. Pages have one small size, so a batch of thousands is some
hundred megabytes at most, and a thing is whole again when its last page has come.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from typing import Any

#: The columns: what a thing belongs to, where it was made, the number of the page
#: there, whether the thing ends with it, and the bytes.
PAGES = "bucket int, source int, page int, last boolean, data binary"
#: Bytes of a page.
PAGE = 1 << 15


def pages(source: int, things: Iterable[tuple[int, bytes]]) -> Iterator[Any]:
    """Cut things, each with the bucket that it belongs to, into pages.

    Yields a record batch for each.
    """
    import pyarrow as pa  # noqa: PLC0415  (loaded only when it is needed)

    page = 0
    for bucket, data in things:
        cut = [data[at : at + PAGE] for at in range(0, len(data), PAGE)]
        n = len(cut)
        columns = {
            "bucket": pa.array([bucket] * n, pa.int32()),
            "source": pa.array([source] * n, pa.int32()),
            "page": pa.array(range(page, page + n), pa.int32()),
            "last": pa.array([False] * (n - 1) + [True]),
            "data": pa.array(cut, pa.binary()),
        }
        page += n
        yield pa.record_batch(columns)


def packed(thing: Any) -> bytes:
    """Pickle what this library made, for a process of its own to open."""
    return pickle.dumps(thing, protocol=pickle.HIGHEST_PROTOCOL)


def unpacked(batches: Iterable[Any]) -> Iterator[tuple[int, Any]]:
    """Open what was packed from record batches of its pages, which are in order."""
    return opened(row for batch in batches for row in _rows(batch))


def _rows(batch: Any) -> Iterator[tuple[int, bool, bytes]]:
    columns = (batch.column(name).to_pylist() for name in ("bucket", "last", "data"))
    return zip(*columns, strict=True)


def opened(rows: Iterable[tuple[int, bool, bytes]]) -> Iterator[tuple[int, Any]]:
    """Open what was packed: by :func:`packed`, and by nobody else."""
    waiting: list[bytes] = []
    for bucket, last, data in rows:
        waiting.append(data)
        if last:
            yield bucket, pickle.loads(b"".join(waiting))  # noqa: S301
            waiting = []
