"""Bytes of files: read, decompressed, limited and as UTF-8; written atomically.

A plain file is read where it is needed. Data from a pipe or a compressed file are
counted while they are read, and stored in a temporary file if they are large: so a
decompression bomb is rejected early, and gigabytes from a pipe take no memory.
"""

from __future__ import annotations

import codecs
import errno
import gzip
import io
import os
import stat
import sys
import tempfile
import threading
import weakref
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import Any, BinaryIO, NoReturn, cast

from branchwise.errors import DataError
from branchwise.files.options import reading_progress, size_text

#: Errors of writing to an open file, which do not say which; how names of drafts begin.
_WRITE_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_DRAFT = ".branchwise."


def is_device(path: Path) -> bool:
    """Whether a path is there and is neither a file nor a directory."""
    return path.exists() and not path.is_file() and not path.is_dir()


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file that gets its final name only when the block ends without error.

    Whatever happens before, Ctrl-C included, an older file of that name stays as
    it was. A link stays one: the file that it leads to is replaced. A device or a
    pipe cannot be replaced and is written to.
    """
    final = Path(path).resolve()
    with _naming(final):
        if is_device(final):
            with final.open("wb") as device:
                yield device
            return
        _check_location(final)
        draft, file = _new_draft(final)
        try:
            with file:
                if final.is_file():
                    draft.chmod(stat.S_IMODE(final.stat().st_mode))
                yield file
                file.flush()
                os.fsync(file.fileno())
            draft.replace(final)
        except BaseException:
            with suppress(FileNotFoundError):
                draft.unlink()
            raise


@contextmanager
def _naming(final: Path) -> Iterator[None]:
    """Name the file in errors of its draft, and of writing to it."""
    try:
        yield
    except OSError as error:
        unnamed, name = error.filename is None, Path(str(error.filename)).name
        if error.errno in _WRITE_ERRORS if unnamed else name.startswith(_DRAFT):
            raise type(error)(error.errno, error.strerror, str(final)) from None
        raise


def _new_draft(final: Path) -> tuple[Path, BinaryIO]:
    """Create a file beside the final one, under a name that no other file has.

    The name is random, because process ids are not unique: every container has its
    own, and they come back after a process was killed. ``tempfile`` is not used, as
    its files can be read by their owner only.
    """
    while True:
        draft = final.with_name(f"{_DRAFT}{token_hex(8)}.part")
        with suppress(FileExistsError):
            return draft, draft.open("xb")


def _check_location(final: Path) -> None:
    """Reject a path that no file can have, as opening it would."""
    if final.is_dir():
        raise IsADirectoryError(
            f"{str(final)!r} is a directory. Give the name of a file in it."
        )
    if not final.parent.is_dir():
        raise FileNotFoundError(
            f"There is no directory {str(final.parent)!r} to write {final.name!r} to. "
            "Make it first, or choose another path."
        )


class StoredFile:
    """The bytes of an open file, named by a label in messages; slices are ``bytes``."""

    def __init__(self, descriptor: int, label: str) -> None:
        self._label = label
        # Duplicated, so that the caller may close it.
        self._descriptor = os.dup(descriptor)
        weakref.finalize(self, os.close, self._descriptor)
        self._size = os.fstat(self._descriptor).st_size
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, where: slice) -> bytes:
        begin, end, _ = where.indices(self._size)
        pieces = []
        while begin < end:
            piece = self._read(begin, end - begin)
            if not piece:
                raise DataError(
                    f"{self._label} became shorter while it was read. Get the whole "
                    "file, and read it while nothing writes to it."
                )
            pieces.append(piece)
            begin += len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def __bytes__(self) -> bytes:
        return self[:]

    def _read(self, begin: int, size: int) -> bytes:
        # One position is shared by all threads.
        with self._lock:
            os.lseek(self._descriptor, begin, os.SEEK_SET)
            return os.read(self._descriptor, size)


class _FileReader(io.RawIOBase):
    """A stored file as a stream with a position of its own."""

    def __init__(self, content: StoredFile) -> None:
        super().__init__()
        self._content = content
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_CUR: self._position, os.SEEK_END: len(self._content)}
        self._position = max(0, base.get(whence, 0) + offset)
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        found = self._content[self._position : self._position + len(buffer)]
        buffer[: len(found)] = found
        self._position += len(found)
        return len(found)


Buffer = bytes | StoredFile

#: The name of standard input, and of standard output.
STANDARD_STREAM = "-"
GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"

_CHUNK = 2**22
_STREAMED = 2**20
#: More bytes are stored in a temporary file.
_IN_MEMORY = 2**26
_TABLES = "CSV, TSV, ARFF, Parquet or other table"
#: First bytes of files that are not tables.
_NO_TABLES = {
    b"\x89PNG\r\n\x1a\n": "a PNG picture",
    b"\xff\xd8\xff": "a JPEG picture",
    b"GIF8": "a GIF picture",
    b"%PDF-": "a PDF document",
    b"\x7fELF": "a program",
    b"MZ": "a program for Windows",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"Rar!": "a RAR archive",
    b"BZh": "compressed with bzip2",
    b"\xfd7zXZ\0": "compressed with xz",
    b"\x93NUMPY": "a NumPy array",
    b"\x89HDF": "an HDF5 file",
    b"\x80\x04\x95": "a Python pickle",
    b"\x80\x05\x95": "a Python pickle",
    b"FEA1": "a Feather file of version 1, which pyarrow.feather can rewrite",
}
#: Those whose first bytes may also begin a text.
_MAYBE_TEXT = frozenset((b"GIF8", b"%PDF-", b"MZ", b"Rar!", b"BZh", b"FEA1"))


def contents(name: str, label: str, most_bytes: int) -> Buffer:
    """Return the bytes of a file, decompressed, without reading them where possible.

    ``name`` is the file, ``-`` standard input; ``label`` its name in messages.
    ``most_bytes`` bounds what comes from a pipe or a compressed file.
    """
    content = _stored(name, label, most_bytes)
    if content[:2] == GZIP:
        return _decompressed(
            content,
            label,
            most_bytes,
            lambda data: gzip.GzipFile(fileobj=as_stream(data)),
        )
    if content[:4] == ZSTD:
        return _decompressed(content, label, most_bytes, _open_zstd)
    return content


def in_memory(content: Buffer) -> Buffer:
    """Return the bytes in memory if they are few."""
    return bytes(content) if len(content) <= _IN_MEMORY else content


def whole_text(content: Buffer, label: str, most_bytes: int) -> Buffer:
    """Return a text that is read into a table; raise if it is too long."""
    if len(content) > most_bytes:
        raise_size(label, most_bytes)
    return in_memory(content)


def raise_size(label: str, most_bytes: int) -> NoReturn:
    """Reject a table that has more bytes than it may have."""
    raise DataError(
        f"{label} has more than {size_text(most_bytes)} of data when it is read. If "
        "that is what it should have, allow more with max_size, such as 50GB."
    )


def as_stream(content: Buffer) -> BinaryIO:
    """Return bytes as a file to read from."""
    if isinstance(content, bytes):
        return io.BytesIO(content)
    return cast("BinaryIO", io.BufferedReader(_FileReader(content), _STREAMED))


def gathered(chunks: Iterator[bytes], label: str, most_bytes: int) -> Buffer:
    """Join bytes, in a temporary file if they are many; raise if they are too many."""
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as file:
        size, progress = 0, reading_progress()
        for chunk in chunks:
            size += len(chunk)
            if progress is not None:
                progress(f"{size // 10**6:,} MB")
            if size > most_bytes:
                raise_size(label, most_bytes)
            try:
                file.write(chunk)
            except OSError as error:
                raise DataError(
                    f"{label} is large, and {tempfile.gettempdir()!r} has no space for "
                    f"it: {error.strerror}. Set TMPDIR to another folder, or give a "
                    "plain file."
                ) from None
        file.seek(0)
        if size <= _IN_MEMORY:
            return file.read()
        file.flush()
        return StoredFile(file.fileno(), label)


def check_binary(content: Buffer, label: str) -> None:
    """Reject binary files, and name their type if it is known."""
    head = bytes(content[: 2**16])
    for magic, what in _NO_TABLES.items():
        sure = magic not in _MAYBE_TEXT or b"\0" in head or not _is_utf8(head)
        if head.startswith(magic) and sure:
            raise DataError(
                f"{label} is {what}, not a table. Give a {_TABLES} file, plain or "
                "compressed with gzip or zstd."
            )
    if head.startswith(b"PK\x03\x04"):
        raise DataError(
            f"{label} is a zip archive or a damaged workbook, not a table. Unpack it "
            "and give the table that is in it, or save the workbook again."
        )
    if b"\0" in head:
        line, column = position(head, head.index(b"\0"))
        raise DataError(
            f"{label} is not a text file: it has a NUL byte in line {line:,}, column "
            f"{column:,}. If it is text in UTF-16, set encoding to utf-16-le; "
            "else save the table as CSV in UTF-8, or as Parquet."
        )


def position(content: Buffer, at: int) -> tuple[int, int]:
    """Return the line and the column, from 1, of a byte; columns count characters."""
    line, line_begin, before = 1, 0, b""
    for begin in range(0, at, _CHUNK):
        chunk = content[begin : min(begin + _CHUNK, at)]
        pairs = chunk.count(b"\r\n") + (before + chunk[:1] == b"\r\n")
        line += chunk.count(b"\n") + chunk.count(b"\r") - pairs
        last = max(chunk.rfind(b"\n"), chunk.rfind(b"\r"))
        line_begin = begin + last + 1 if last >= 0 else line_begin
        before = chunk[-1:]
    return line, len(content[line_begin:at].decode("utf-8", "replace")) + 1


def find(content: Buffer, wanted: bytes, start: int) -> int:
    """Return where bytes occur first, or -1."""
    if isinstance(content, bytes):
        return content.find(wanted, start)
    for number, chunk in enumerate(chunks_of(content, start, len(wanted) - 1)):
        at = chunk.find(wanted)
        if at >= 0:
            return start + number * _CHUNK + at
    return -1


def chunks_of(content: Buffer, start: int, overlap: int) -> Iterator[bytes]:
    """Yield pieces with so many bytes of the next; a text in memory is one piece."""
    size = max(len(content), 1) if isinstance(content, bytes) else _CHUNK
    for begin in range(start, len(content), size):
        yield content[begin : begin + size + overlap]


def _is_utf8(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def _stored(name: str, label: str, most_bytes: int) -> Buffer:
    if name == STANDARD_STREAM:
        if sys.stdin is None:
            raise DataError("Standard input is closed, so no table can be read from it")
        return gathered(_chunks(sys.stdin.buffer), label, most_bytes)
    try:
        with Path(name).open("rb") as file:
            status = os.fstat(file.fileno())
            if stat.S_ISREG(status.st_mode) and status.st_size:
                return StoredFile(file.fileno(), label)
            return gathered(_chunks(file), label, most_bytes)
    except FileNotFoundError:
        raise DataError(f"There is no file {label!r}. Check the path.") from None
    except IsADirectoryError:
        raise DataError(
            f"{label!r} is a directory. Give the {_TABLES} file in it."
        ) from None
    except DataError:
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{label!r} cannot be read: {reason}.") from None


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    return iter(lambda: stream.read(_CHUNK), b"")


def _decompressed(
    content: Buffer, label: str, most_bytes: int, unpack: Callable[[Buffer], Any]
) -> Buffer:
    def chunks() -> Iterator[bytes]:
        try:
            with unpack(content) as stream:
                yield from _chunks(stream)
        except (EOFError, OSError, zlib.error) as error:
            truncated = isinstance(error, EOFError) or "Truncated" in str(error)
            what = (
                "is truncated: the compressed data have no end"
                if truncated
                else f"cannot be decompressed: {error}"
            )
            raise DataError(f"{label} {what}. Copy or download it again.") from None

    decompressed = gathered(chunks(), label, most_bytes)
    if decompressed[:2] == GZIP or decompressed[:4] == ZSTD:
        raise DataError(f"{label} is compressed twice. Decompress it once first.")
    return decompressed


def _open_zstd(content: Buffer) -> Any:
    import pyarrow as pa  # noqa: PLC0415  (loaded only when a file is read)

    source = pa.PythonFile(as_stream(content), mode="r")
    return pa.CompressedInputStream(source, "zstd")


#: The longer marks first: that of UTF-32 begins like that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def as_utf8(
    content: Buffer, label: str, encoding: str | None, most_bytes: int
) -> Buffer:
    """Return a text in UTF-8; what is in UTF-8 already is left as it is, unchecked.

    An encoding of None is UTF-8, or what a byte order mark says; ``most_bytes`` bounds
    the text in UTF-8.
    """
    marked = next((name for mark, name in _MARKS if content[:4].startswith(mark)), None)
    encoding = encoding or marked or "utf-8"
    if encoding.removesuffix("-sig") in ("utf-8", "ascii"):
        return content
    return gathered(_recoded(content, label, encoding), label, most_bytes)


def text_start(content: Buffer) -> int:
    """Return where a text in UTF-8 begins: after a byte order mark."""
    return len(codecs.BOM_UTF8) if content[:3] == codecs.BOM_UTF8 else 0


def checked_text(
    content: Buffer, label: str, encoding: str | None, most_bytes: int
) -> Buffer:
    """Return a text in UTF-8; raise if it is none."""
    content = as_utf8(content, label, encoding, most_bytes)
    check_binary(content, label)
    if _first_wrong(content) is not None:
        raise_encoding(content, label)
    return content


def _first_wrong(content: Buffer) -> int | None:
    """Return the position of the first byte that is not UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    for begin in range(0, len(content), _CHUNK):
        waiting = len(decoder.getstate()[0])
        try:
            last = begin + _CHUNK >= len(content)
            decoder.decode(content[begin : begin + _CHUNK], final=last)
        except UnicodeDecodeError as error:
            return begin - waiting + error.start
    return None


def raise_encoding(content: Buffer, label: str) -> NoReturn:
    """Raise with the position of the first byte that is not UTF-8, and advice."""
    wrong = _first_wrong(content) or 0
    line, column = position(content, wrong)
    byte = content[wrong : wrong + 1].hex()
    raise DataError(
        f"{label} is not UTF-8 text: see line {line:,}, column {column:,} (byte "
        f"0x{byte}). Set encoding: cp1252 is usual for files from Windows, latin-1 "
        "for other older files."
    )


def _recoded(content: Buffer, label: str, encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)()
    lines, column = 1, 1
    for begin in range(0, len(content), _CHUNK):
        chunk = content[begin : begin + _CHUNK]
        try:
            text = decoder.decode(chunk, final=begin + _CHUNK >= len(content))
        except UnicodeError as error:
            good = _decodable(content, encoding, begin, error)
            line, at = _advanced(lines, column, good)
            raise DataError(
                f"{label} is not text in {encoding}: see line {line:,}, column "
                f"{at:,} ({getattr(error, 'reason', error)}). Give another encoding, "
                "or leave it out for UTF-8."
            ) from None
        lines, column = _advanced(lines, column, text)
        yield text.encode("utf-8", "surrogatepass")


def _decodable(content: Buffer, encoding: str, begin: int, error: UnicodeError) -> str:
    """Return the text of a chunk before what cannot be decoded."""
    stop = begin + max(getattr(error, "start", 0), 0)
    decoder = codecs.getincrementaldecoder(encoding)("ignore")
    if encoding.startswith(("utf-16", "utf-32")) and begin:
        decoder.decode(content[:4])  # the byte order
    try:
        return decoder.decode(content[begin:stop])
    except UnicodeError:  # no byte order mark, which is never ignored
        return ""


def _advanced(line: int, column: int, text: str) -> tuple[int, int]:
    begin = text.rfind("\n")
    column = column + len(text) if begin < 0 else len(text) - begin
    return line + text.count("\n"), column
