"""What goes wrong between a file and a tree: a clear error, and nothing left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from branchwise import DataError, fit_tree
from branchwise.engines import chunked as store
from branchwise.engines.chunked import ChunkedTable
from branchwise.engines.level_engine import CountColumns
from branchwise.files import dataset as part_files
from branchwise.files.dataset import StreamedTable
from branchwise.grow import grow as grafts
from branchwise.recipe import ID3
from branchwise.train.engine_growth import Below

LINUX = pytest.mark.skipif(
    not Path("/proc/self/fd").exists(), reason="open files are counted in /proc"
)


def random_rows(n=400):
    rng = np.random.default_rng(0)
    columns = {name: rng.choice(list("uvwx"), n) for name in "abcd"}
    return pd.DataFrame(columns | {"y": rng.choice(["p", "n"], n)})


@pytest.fixture
def files(tmp_path):
    random_rows().to_csv(tmp_path / "data.csv", index=False)
    random_rows().to_parquet(tmp_path / "data.parquet", row_group_size=100)
    (tmp_path / "temporary").mkdir()
    return tmp_path


def open_files(folder):
    """Return the files of a folder that this process has open."""
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # what lists them is closed by now
            found.append(str(entry.readlink()))
    return sorted(name for name in found if name.startswith(str(folder)))


class Changing(ChunkedTable):
    """Files that change between the look and the counting."""

    change = staticmethod(lambda: None)

    def learn(self, task):
        plan = super().learn(task)
        self.change()
        return plan


def changing(path, change, chunk_rows=90, **options):
    place = Changing(replace(StreamedTable.of(path), chunk_rows=chunk_rows), **options)
    place.change = change
    return place


# ---- rooms that are full, or closed -----------------------------------------------


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full device")
def test_a_full_disk_is_told(files, monkeypatch):
    def full(ending, dir):  # noqa: A002
        name = dir / f"full{ending}"
        name.touch()
        return os.open("/dev/full", os.O_WRONLY), str(name)

    monkeypatch.setattr(store.tempfile, "mkstemp", full)
    folder = files / "temporary"
    place = ChunkedTable(files / "data.parquet", temporary_folder=str(folder))
    with pytest.raises(DataError, match=r"cannot take the encoded rows: it is full"):
        fit_tree(place, "y")
    assert list(folder.iterdir()) == []
    without = ChunkedTable(files / "data.parquet", cache=False)
    assert fit_tree(without, "y").tree.max_depth > 1


@pytest.mark.skipif(sys.platform == "win32", reason="limits are POSIX's")
def test_a_file_that_may_not_grow_is_told(files):
    code = f"""
        import resource, numpy as np, pandas as pd
        from branchwise import DataError, fit_tree
        from branchwise.engines.chunked import ChunkedTable
        rng = np.random.default_rng(0)
        rows = pd.DataFrame({{"x": rng.normal(size=20000), "y": "p"}})
        rows.loc[::2, "y"] = "n"
        rows.to_parquet({str(files / "large.parquet")!r})
        resource.setrlimit(resource.RLIMIT_FSIZE, (10000, 10000))
        folder = {str(files / "temporary")!r}
        place = ChunkedTable(
            {str(files / "large.parquet")!r}, temporary_folder=folder
        )
        try:
            fit_tree(place, "y", max_exact=20000)
        except DataError as error:
            print(error)
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "cannot take the encoded rows: File too large" in done.stdout
    assert done.stderr == ""
    assert list((files / "temporary").iterdir()) == []


def test_a_folder_for_temporary_files_that_cannot_be_used(files):
    for folder in (files / "none", files / "data.csv"):
        place = ChunkedTable(files / "data.csv", temporary_folder=str(folder))
        with pytest.raises(DataError, match=r"temporary_folder cannot be used: No"):
            fit_tree(place, "y")


def test_no_room_for_the_pieces_of_a_tree(files, monkeypatch):
    class Full:
        def __init__(self, max_size):
            self.closed = False

        def __enter__(self):
            return self

        def __exit__(self, *error):
            self.closed = True

        def write(self, data):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(grafts.tempfile, "SpooledTemporaryFile", Full)
    with pytest.raises(DataError, match=r"no space for its pieces: No space left"):
        fit_tree(files / "data.parquet", "y")


# ---- files that change ------------------------------------------------------------


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("options", [{}, {"cache": False}])
def test_files_that_change_are_refused(form, options, files):
    path = files / f"data.{form}"

    def write(rows):
        if form == "csv":
            rows.to_csv(path, index=False)
        else:
            rows.to_parquet(path)

    more = pd.concat([random_rows(), random_rows(3)])
    strange = random_rows().replace({"a": {"u": "strange"}})
    for rows in (more, strange, random_rows(7)):
        write(random_rows())
        folder = files / "temporary"
        place = changing(
            path, lambda r=rows: write(r), temporary_folder=str(folder), **options
        )
        with pytest.raises(DataError, match="changed while the tree was grown"):
            fit_tree(place, "y")
        assert list(folder.iterdir()) == []


def in_place(path, old, new):
    """Change a file so that its size and its time stay the same."""
    status = path.stat()
    with path.open("r+b") as file:
        content = file.read()
        assert old in content
        file.seek(0)
        file.write(content.replace(old, new, 1))
        file.truncate()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_changes_that_only_the_rows_show(files):
    path = files / "data.csv"
    place = changing(path, lambda: in_place(path, b"\nu,", b"\nz,"))
    with pytest.raises(DataError, match=r"column 'a' now has values that it did not"):
        fit_tree(place, "y")
    random_rows().to_csv(path, index=False)
    place = changing(path, lambda: in_place(path, b"p\nu,", b"p,\nu"))
    with pytest.raises(DataError, match=r"cells in line \d+, but 5 in its header"):
        fit_tree(place, "y")


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_files_that_are_cut_off_are_refused(form, files):
    path = files / f"data.{form}"
    place = changing(path, lambda: os.truncate(path, path.stat().st_size // 2))
    with pytest.raises(DataError, match=r"changed while|not a whole Parquet|truncated"):
        fit_tree(place, "y")


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_files_that_vanish_are_named(form, files):
    path = files / f"data.{form}"
    place = changing(path, path.unlink)
    with pytest.raises(DataError, match=rf"There is no file .*data.{form}"):
        fit_tree(place, "y")


def test_text_that_becomes_shorter_while_it_is_read(files, monkeypatch):
    monkeypatch.setattr(part_files, "BLOCK_BYTES", 500)
    path = files / "data.csv"
    place = ChunkedTable(path, say=lambda _: os.truncate(path, 600))
    with pytest.raises(DataError, match="became shorter while it was read"):
        fit_tree(place, "y")


# ---- Ctrl-C -----------------------------------------------------------------------


@LINUX
@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("where", ["count", "finish", "look"])
@pytest.mark.parametrize("options", [{}, {"cache": False}])
def test_an_interruption_leaves_nothing_behind(
    where, form, options, files, monkeypatch
):
    if where == "finish":
        options = {"most_rows": 50 if options else 20}
    calls = []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) > 2:
            raise KeyboardInterrupt
        return original(*arguments)

    folder = files / "temporary"
    table = replace(StreamedTable.of(files / f"data.{form}"), chunk_rows=90)
    place = ChunkedTable(table, temporary_folder=str(folder), **options)
    if where == "look":
        original = place._say
        place._say = interrupted
    else:
        owner = CountColumns if where == "count" else Below
        original = owner.__call__
        monkeypatch.setattr(owner, "__call__", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        fit_tree(place, "y")
    assert open_files(files) == []
    assert list(folder.iterdir()) == []
    assert caught.value.__traceback__ is not None


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
def test_ctrl_c_ends_a_fit_without_a_trace(files):
    code = f"""
        import time
        from branchwise import fit_tree
        from branchwise.engines.chunked import ChunkedTable

        def say(text):
            print(text, flush=True)
            if text.startswith("Encoding"):
                time.sleep(30)

        folder = {str(files / "temporary")!r}
        place = ChunkedTable({str(files / "data.csv")!r}, True, folder, say=say)
        fit_tree(place, "y").save({str(files / "model.json")!r})
    """
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        for line in process.stdout:
            if line.startswith("Encoding"):
                break
        assert len(list((files / "temporary").iterdir())) == 1
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    assert errors.strip().endswith("KeyboardInterrupt")
    assert "Warning" not in errors
    assert list((files / "temporary").iterdir()) == []
    assert not (files / "model.json").exists()


def test_a_place_can_be_used_again(files):
    place = ChunkedTable(files / "data.csv", temporary_folder=str(files / "temporary"))
    first = fit_tree(place, "y", replace(ID3, max_depth=2))
    assert list((files / "temporary").iterdir()) == []
    assert fit_tree(place, "y").tree != first.tree
    assert fit_tree(place, "y", replace(ID3, max_depth=2)).tree == first.tree
