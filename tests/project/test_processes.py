"""Killed, forked and ending processes: nothing hangs, aborts or is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pandas as pd
import pytest

from branchwise import C45Classifier, CARTClassifier, load
from branchwise.data.arrays import distinct
from branchwise.files import raw_bytes as files
from selection import first_fast

needs_fork = pytest.mark.skipif(
    not hasattr(os, "fork") or sys.version_info >= (3, 12),
    reason="Python 3.12 and later warn of a fork with threads",
)


def table(n: int = 300) -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "a": rng.integers(0, 5, n).astype(str),
            "b": rng.integers(0, 4, n).astype(str),
            "c": rng.normal(size=n),
        }
    )
    return X, pd.Series(rng.integers(0, 3, n).astype(str))


# ---- drafts of files ---------------------------------------------------------------


@pytest.fixture
def names(monkeypatch):
    """Let the random parts of the names of drafts be these."""
    given: list[str] = []
    monkeypatch.setattr(files, "token_hex", lambda n: given.pop(0))
    return given


def test_a_draft_of_another_process_is_neither_used_nor_deleted(tmp_path, names):
    names += ["taken", "free"]
    other = tmp_path / ".branchwise.taken.part"
    other.write_bytes(b"of another process")
    with files.atomic_write(tmp_path / "out") as file:
        file.write(b"ours")
    assert (tmp_path / "out").read_bytes() == b"ours"
    assert other.read_bytes() == b"of another process"
    assert sorted(path.name for path in tmp_path.iterdir()) == [other.name, "out"]


def test_a_draft_that_fails_leaves_those_of_others(tmp_path, names):
    names += ["taken", "free"]
    other = tmp_path / ".branchwise.taken.part"
    other.write_bytes(b"of another process")
    with (
        pytest.raises(RuntimeError),
        files.atomic_write(tmp_path / "out"),
    ):
        raise RuntimeError
    assert [path.name for path in tmp_path.iterdir()] == [other.name]


def test_errors_of_other_files_keep_their_names(tmp_path):
    other = tmp_path / "rows.part"
    with (
        pytest.raises(FileNotFoundError) as raised,
        files.atomic_write(tmp_path / "out"),
    ):
        other.open()
    assert raised.value.filename == str(other)


def test_drafts_of_the_same_process_id_do_not_meet(tmp_path, monkeypatch):
    # In containers every process has the id 1.
    monkeypatch.setattr(os, "getpid", lambda: 1)
    X, y = table()
    model = C45Classifier(max_depth=1).fit(X, y).model_
    seen = set()
    for _ in range(3):
        with files.atomic_write(tmp_path / "tree.json"):
            (draft,) = tmp_path.glob("*.part")
            seen.add(draft.name)
    assert len(seen) == 3
    model.save(tmp_path / "tree.json")
    assert load(tmp_path / "tree.json").predict(X).tolist() == model.predict(X).tolist()


def test_a_draft_has_the_permissions_of_a_new_file(tmp_path):
    mask = os.umask(0o022)
    try:
        with files.atomic_write(tmp_path / "out"):
            pass
    finally:
        os.umask(mask)
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o644


# ---- forks -------------------------------------------------------------------------


def storm(n_children: int, patience: float = 60) -> int:
    """Fork while threads fit and predict; return how many children have failed."""
    X, y = table()
    shared = C45Classifier().fit(X, y)
    stopped = threading.Event()

    def work() -> None:
        while not stopped.is_set():
            C45Classifier(max_depth=3).fit(X, y).predict(X)
            CARTClassifier(max_depth=3, n_jobs=2).fit(X, y).model_.rules()

    def child() -> None:
        shared.predict(X)
        str(shared.model_)
        C45Classifier(max_depth=3).fit(X, y).predict(X)
        CARTClassifier(max_depth=3, n_jobs=2).fit(X, y).model_.rules()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    failed = 0
    try:
        for _ in range(n_children):
            failed += not _succeeds(child, patience)
    finally:
        stopped.set()
        for thread in threads:
            thread.join()
    return failed


def _succeeds(work, patience: float) -> bool:
    pid = os.fork()
    if not pid:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    end = time.monotonic() + patience
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status == 0
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return False


@needs_fork
def test_children_of_a_fork_do_not_wait_for_threads_that_they_lack():
    assert storm(8) == 0


@needs_fork
@pytest.mark.slow
def test_children_of_many_forks():
    assert storm(1000) == 0


def test_cached_properties_have_no_lock():
    """One thread that computes does not keep another from computing."""
    from branchwise.threads import cached_property

    begun, done = threading.Event(), threading.Event()

    class Thing:
        def __init__(self, waits: bool) -> None:
            self.waits = waits

        @cached_property
        def value(self) -> list[int]:
            """A value."""
            if self.waits:
                begun.set()
                assert done.wait(60)
            return [1]

    thread = threading.Thread(target=lambda: Thing(True).value)
    thread.start()
    assert begun.wait(60)
    quick = Thing(False)
    assert quick.value is quick.value
    assert Thing.value.__doc__ == "A value."
    done.set()
    thread.join()


# ---- the end of the interpreter ----------------------------------------------------

ENDING = """
import threading, time, warnings
import numpy as np
from branchwise import C45Classifier, CARTClassifier

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X, y = rng.normal(size=(4000, 6)), rng.integers(0, 3, 4000)
started = threading.Barrier(7)

def work(number):
    kind = (C45Classifier, CARTClassifier)[number % 2]
    kind(max_depth=2).fit(X, y)
    started.wait()
    while True:
        kind(max_depth=8, n_jobs=1 + number % 3).fit(X, y).predict(X)

for number in range(6):
    threading.Thread(target=work, args=(number,), daemon=True).start()
started.wait()
time.sleep({pause})
"""


@pytest.mark.parametrize("pause", first_fast([0.05, 0.01, 0.2]))
def test_daemon_threads_that_fit_do_not_abort_the_end(pause):
    _end(pause)


@pytest.mark.slow
@pytest.mark.parametrize("attempt", range(40))
def test_daemon_threads_at_many_ends(attempt):
    _end(0.005 * attempt)


def _end(pause: float) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ENDING.format(pause=pause)],
        check=False,
        capture_output=True,
        timeout=300,
    )
    assert (done.returncode, done.stderr.decode()) == (0, "")


@pytest.mark.parametrize(
    "values", [[], [3], [2, 1, 2, 3, 1], [0.5, -1.0, 0.5], ["b", "a", "b"]]
)
def test_distinct_values(values):
    array = np.array(values)
    assert distinct(array).tolist() == sorted(set(values))
