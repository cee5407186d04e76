"""Try to break what is promised of models: random tables, estimators and parameters.

    python fuzz/fits.py --n 5000 --seed 1
    python fuzz/fits.py --n 200 --seed 1 --only row_order --only kernels

Every case goes through every check; ``fit_laws.py``, ``fit_tables.py``,
``fit_engines.py``, ``fit_answers.py``, ``fit_views.py`` and ``fit_oracles.py`` have
them. What does not hold is printed with the seed, the index, and a script of the
smallest case found that shows it; the exit code is then 1. Only errors of branchwise
count as a refusal. Cases run in a child process, so that one that crashes or hangs is
a finding, too.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import IO, Any, cast

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / "tests/helpers")]

from branchwise import BranchwiseError, BranchwiseWarning, FitWarning
from fit_answers import ANSWERS
from fit_cases import Case, make_case
from fit_engines import ENGINES, SLOW
from fit_laws import LAWS
from fit_oracles import ORACLES
from fit_shrinking import shrunk
from fit_tables import TABLES
from fit_views import VIEWS
from limits import time_limit

#: Check -> a function that fails, or tells whether the case was one for it.
CHECKS: dict[str, Callable[[Case], bool]] = {
    **LAWS,
    **ANSWERS,
    **VIEWS,
    **TABLES,
    **ENGINES,
    **ORACLES,
    **SLOW,
}
QUICK = tuple(name for name in CHECKS if name not in SLOW)
#: Seconds of processor time for one check of one case before it counts as hanging.
LIMIT = 60
#: Seconds without a word of the child, which hangs in native code.
SILENCE = 1800
#: Seconds to look for a smaller case.
SHRINKING = 20
#: Problems of one kind that are made small; of further ones there is only a line.
SHOWN = 3


def tried(check: str, case: Case) -> tuple[bool, str | None]:
    """Return whether a check applies to a case, and the problem that it finds."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", FitWarning)
            # Numbers that are written as text are read as such, and said to be.
            warnings.filterwarnings("ignore", ".* read as numbers", BranchwiseWarning)
            with time_limit(LIMIT):
                return CHECKS[check](case), None
    except AssertionError as error:
        return True, f"broken: {error}"
    except BranchwiseError as error:
        return True, f"refused after fitting: {type(error).__name__}: {error}"
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        ours = [f for f in frames if "/branchwise/" in f.filename] or frames
        place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}"
        return True, f"raised: {type(error).__name__} at {place}: {error}"


def kind_of(found: str | None) -> str | None:
    """Return what a problem has in common with the same one in a smaller case."""
    if found is None:
        return None
    kind, _, rest = found.partition(": ")
    words = re.sub(r"[-+]?\d[\d.e+-]*", "#", rest.partition(":")[0]).split()
    return f"{kind}: {' '.join(words[:5])}"


def run_case(seed: int, index: int, checks: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Run checks on a case; yield a record for each."""
    case = make_case(seed, index)
    for check in checks:
        record: dict[str, Any] = {"index": index, "check": check}
        yield record | {"event": "begin"}
        applies, found = tried(check, case)
        event = "ok" if applies else "skipped"
        if found is not None:
            event = "problem"
            record |= {"found": found}
        yield record | {"event": event}


def smallest(check: str, case: Case, found: str) -> tuple[Case, str]:
    """Return the smallest case that shows the same problem, and what it shows."""
    kind = kind_of(found)
    small = shrunk(case, lambda c: kind_of(tried(check, c)[1]) == kind, SHRINKING)
    return small, tried(check, small)[1] or found


def child(arguments: argparse.Namespace) -> None:
    """Run cases one after the other, and tell the parent of each step."""
    out = os.fdopen(os.dup(1), "w")
    seen: Counter[tuple[str, str | None]] = Counter()
    os.dup2(2, 1)  # what libraries print is not for the parent
    for index in range(arguments.first, arguments.n):
        for record in run_case(arguments.seed, index, arguments.only):
            seen[record["check"], kind_of(record.get("found"))] += 1
            known = seen[record["check"], kind_of(record.get("found"))] > SHOWN
            if record["event"] == "problem" and arguments.shrink and not known:
                print(json.dumps(record | {"event": "begin"}), file=out, flush=True)
                case = make_case(arguments.seed, index)
                small, found = smallest(record["check"], case, record["found"])
                record |= {"found": found, "script": small.script(record["check"])}
            print(json.dumps(record), file=out, flush=True)


def _lines(stream: IO[str]) -> Iterator[str | None]:
    """Yield lines as they come, and None where one does not come in time."""
    lines: Queue[str] = Queue()

    def read() -> None:
        for line in stream:
            lines.put(line)
        lines.put("")

    Thread(target=read, daemon=True).start()
    while True:
        try:
            line = lines.get(timeout=SILENCE)
        except Empty:
            yield None
            continue
        if not line:
            return
        yield line


def watched(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Run cases in child processes; a crash or a hang ends the child, not the run."""
    first = arguments.first
    while first < arguments.n:
        command = [sys.executable, __file__, "--child", "--seed", str(arguments.seed)]
        command += ["--n", str(arguments.n), "--first", str(first)]
        command += [] if arguments.shrink else ["--no-shrink"]
        command += [part for name in arguments.only for part in ("--only", name)]
        last: dict[str, Any] = {"index": first, "check": "start"}
        reason = None
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for line in _lines(cast("IO[str]", process.stdout)):
                if line is None:
                    reason = "hangs"
                    process.kill()
                    break
                last = json.loads(line)
                yield last
        code = process.returncode
        if not reason and code == 0:
            return
        reason = reason or f"ends the process with code {code}"
        script = make_case(arguments.seed, last["index"]).script(last["check"])
        yield last | {"event": "problem", "found": f"crash: {reason}", "script": script}
        first = last["index"] + 1


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Return what is asked for on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--n", type=int, default=500, help="how many cases")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the first case")
    parser.add_argument("--only", action="append", choices=list(CHECKS))
    parser.add_argument("--slow", action="store_true", help="engines that start slowly")
    parser.add_argument("--no-shrink", dest="shrink", action="store_false")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args(words)
    arguments.only = arguments.only or list(CHECKS if arguments.slow else QUICK)
    return arguments


def main() -> int:
    """Run the campaign."""
    arguments = parsed()
    if arguments.child:
        child(arguments)
        return 0
    done: Counter[str] = Counter()
    found: Counter[str] = Counter()
    started = time.monotonic()
    for record in watched(arguments):
        done[record["check"]] += record["event"] in ("ok", "problem")
        if record["event"] == "problem":
            found[record["check"]] += 1
            print(
                f"\n## seed {arguments.seed}, case {record['index']}, {record['check']}"
            )
            print(f"# {record['found']}".replace("\n", "\n# "))
            print(record.get("script", ""), flush=True)
    seconds = time.monotonic() - started
    print(f"\n{arguments.n - arguments.first} cases in {seconds:.0f} s")
    for name in arguments.only:
        print(f"{name:18} {done[name]:7} run {found[name]:5} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
