"""Arrays of one length, batch after batch, in a temporary file that packs them."""

from __future__ import annotations

import contextlib
import errno
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.errors import DataError
from branchwise.table.arrow import as_array, from_array, give_back


class BatchStore:
    """A file of batches of arrays, which are written once and read many times.

    Parameters
    ----------
    folder : path
        Where the file is made.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path: Path | None = None
        self._writer: Any = None
        self.sizes: list[int] = []

    def append(self, arrays: Sequence[NDArray[Any]]) -> None:
        """Add a batch; every batch has arrays of the same types."""
        import pyarrow as pa  # noqa: PLC0415  (loaded only when it is needed)
        from pyarrow import ipc  # noqa: PLC0415

        columns = [from_array(array) for array in arrays]
        names = [str(at) for at in range(len(columns))]
        batch = pa.record_batch(columns, names)
        with self._room():
            if self._writer is None:
                handle, name = tempfile.mkstemp(".codes", dir=self._folder)
                self._path = Path(name)
                self._file = open(handle, "wb")  # noqa: PTH123, SIM115
                options = ipc.IpcWriteOptions(compression="lz4")
                self._writer = ipc.new_file(self._file, batch.schema, options=options)
            self._writer.write_batch(batch)
        self.sizes.append(len(arrays[0]))

    def close(self) -> None:
        """End writing."""
        if self._writer is not None and not self._file.closed:
            with self._room():
                self._writer.close()
                self._file.close()

    @property
    def n_bytes(self) -> int:
        """How large the file is."""
        return 0 if self._path is None else self._path.stat().st_size

    def batches(self) -> Iterator[list[NDArray[np.generic]]]:
        """Read all batches, one after the other."""
        import pyarrow as pa  # noqa: PLC0415
        from pyarrow import ipc  # noqa: PLC0415

        self.close()
        if self._path is None:
            return
        with pa.OSFile(str(self._path)) as source, ipc.open_file(source) as file:
            for at in range(file.num_record_batches):
                yield [as_array(column) for column in file.get_batch(at).columns]
        give_back()

    def remove(self) -> None:
        """Take the file away."""
        if self._path is None:
            return
        with contextlib.suppress(OSError, ValueError):
            self._file.close()
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()
        self._path = self._writer = None

    @contextlib.contextmanager
    def _room(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.remove()
            reason = "it is full" if error.errno == errno.ENOSPC else error.strerror
            raise DataError(
                f"The folder {str(self._folder)!r} for temporary files cannot take the "
                f"encoded rows: {reason}. Make room, choose another folder "
                "(temporary_folder, --temporary-folder), or go without (cache=False, "
                "--no-cache)."
            ) from None
