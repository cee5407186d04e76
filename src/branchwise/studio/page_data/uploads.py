"""Files that the page has sent, in a folder that other users cannot enter."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from branchwise.errors import DataError
from branchwise.studio.page_data.loaded_table import shown_name, stored_name


class Upload(NamedTuple):
    """A file that was received whole, and what the page calls it."""

    path: str
    name: str


class Uploads:
    """The temporary files of a workspace."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._n_folders = 0
        self._received: Upload | None = None

    @contextmanager
    def receiving(self, name: str) -> Iterator[IO[bytes]]:
        """Open a new file for a table that is uploaded; keep it if it is whole."""
        path = self._new_folder() / stored_name(name)
        try:
            with path.open("wb") as file:
                yield file
        except BaseException:
            self.remove(str(path))
            raise
        self._received = Upload(str(path), shown_name(name))

    def taken(self) -> Upload:
        """Return the file that was received last."""
        if self._received is None:
            raise DataError("No table has been uploaded. Choose a file first.")
        found, self._received = self._received, None
        return found

    @contextmanager
    def stored(self, content: str) -> Iterator[Path]:
        """Store a text in a file while it is read."""
        path = self._new_folder() / "session.actions.json"
        try:
            path.write_text(content, "utf-8")
            yield path
        finally:
            self.remove(str(path))

    def _new_folder(self) -> Path:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="branchwise-studio-"))
        self._n_folders += 1
        folder = self._folder / str(self._n_folders)
        folder.mkdir()
        return folder

    def remove(self, path: str) -> None:
        """Remove a file with its folder, if it was uploaded."""
        if self._folder is not None and Path(path).is_relative_to(self._folder):
            shutil.rmtree(Path(path).parent, ignore_errors=True)

    def close(self) -> None:
        """Remove all files."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
