"""Messages to the studio at random: each is responded to, none is a mistake of ours.

    python fuzz/messages.py --n 100000 --seed 0

Messages are sent in sessions of 500, numbered from the seed on, and each session is
made from its number alone. A finding is printed with its message and the number of its
session: ``--n 500 --seed NUMBER`` makes it again. The exit code is 1 if there is any.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / "tests/helpers")]

from branchwise.studio import protocol
from branchwise.studio.protocol import METHODS
from branchwise.studio.workspace import Workspace
from studio_tables import TABLES, Page

#: Messages of one session.
SESSION = 500
#: What takes long is asked rarely.
RARE = ("score", "export", "start", "open", "diff", "load", "reread")
NODES = [
    *(["/"] * 8 + ["/0", "/1"] * 4 + ["/0/0", "/0/1", "/1/0"] * 2),
    *("/9", "/0/0/0/0", "", "0", "/-1", "//"),
]
COLUMNS = [
    *(["colour", "size", "code", "day", "weight"] * 4),
    *("bought", "price", "", "none"),
]
ACTIONS = [
    *(["split", "grow"] * 4),
    *("prune", "lock", "unlock", "relabel", "note", "set_missing"),
    *("undo", "goto", "__class__", None),
]
ODD = [
    *(None, True, False, 0, 1, -1, 3.5, 1e308, -1e308, 10**30, math.nan, math.inf),
    *("", "yes", "red", "2024-03-01", "\0", "\ud800", "../../etc/passwd", "x" * 5_000),
    *([], {}, [[]], [None], {"a": 1}, [["red"], ["green", "blue"]], [["red"]]),
    *("/etc/passwd", "hold-out", "sql", "onnx", "id3", "number", "ignore", "{}\n"),
]


class Fuzz:
    """Makes messages: mostly well formed, with something odd in them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def pick(self, *choices: Any) -> Any:
        """Choose one of several."""
        return self.random.choice(choices)

    def value(self, depth: int = 0) -> Any:
        """Return anything that JSON may hold."""
        draw = self.random.random()
        if draw < 0.1 and depth < 4:
            return [self.value(depth + 1) for _ in range(self.random.randrange(4))]
        if draw < 0.2 and depth < 4:
            return {str(self.value(9)): self.value(depth + 1) for _ in range(2)}
        return self.random.choice([*ODD, *NODES, *COLUMNS])

    def argument(self, name: str) -> Any:
        """Return an argument, mostly of its type."""
        draw = self.random.random()
        if draw < 0.08:
            return self.value()
        if name == "node":
            return self.random.choice(NODES)
        if name in ("column", "target"):
            return self.random.choice(COLUMNS)
        if name == "action":
            return self.action()
        if name in ("row", "kinds", "recipe", "options", "reading"):
            named = [*COLUMNS, "algorithm", "max_depth", "dialect", "pruning"]
            if name == "reading":
                named = [
                    "sheet",
                    "header",
                    "skip",
                    "separator",
                    "missing",
                    "names_file",
                ]
            return {self.random.choice(named): self.value() for _ in range(3)}
        if name in ("number", "rows", "folds", "repeats"):
            return self.random.randrange(12)
        if name in ("on", "worked"):
            return self.pick(True, False)
        if name in ("content", "other"):
            return self.pick("", "{}", '{"actions": 1}\n', self.content())
        return self.value()

    def content(self) -> str:
        """Return a file of actions with something odd in it."""
        header = {"actions": 1, "target": self.pick(*COLUMNS), "recipe": {}}
        header[self.pick("recipe", "options", "labels", "target", "studio")] = (
            self.value()
        )
        lines = [header, *(self.action() for _ in range(3)), self.value()]
        return "\n".join(json.dumps(line) for line in lines) + "\n"

    def action(self) -> dict[str, Any]:
        """Return an action, mostly a valid one."""
        action = {"do": self.pick(*ACTIONS), "node": self.pick(*NODES)}
        for name in ("column", "threshold", "groups", "levels", "text", "to", "recipe"):
            if self.random.random() < 0.06:
                action[name] = self.value()
        if action["do"] == "split":
            action["column"] = self.random.choice(COLUMNS)
        if action["do"] == "note":
            action["text"] = self.pick("", "a note", "<script>")
        if action["do"] == "set_missing":
            action["to"] = self.pick("largest", "stop", "every", 0, 9)
        if action["do"] == "relabel":
            action["prediction"] = self.pick("yes", "no", "maybe", 1)
        return action

    def message(self) -> Any:
        """Return a message, mostly a well formed one."""
        if self.random.random() < 0.05:
            return self.value()
        method = self.random.choice([*METHODS])
        if method in RARE and self.random.random() < 0.8:
            method = self.pick("apply", "candidates", "preview", "undo", "distribution")
        if self.random.random() < 0.03:
            method = self.value()
        known = METHODS.get(method, {}) if isinstance(method, str) else {}
        args = {
            name: self.argument(name)
            for name, argument in known.items()
            if argument.required or self.random.random() < 0.2
        }
        if self.random.random() < 0.03:
            args[str(self.value(9))] = self.value()
        return {"method": method, "args": args if self.random.random() > 0.02 else 3}


def run(seed: int, n: int) -> dict[str, int]:
    """Send messages to a workspace; return how many were answered and refused."""
    fuzz, workspace = Fuzz(seed), Workspace()
    page = Page(workspace)
    name = "numbers" if seed % 2 else "classes"
    target = TABLES[name][1]
    told = {"result": 0, "error": 0}

    def begin():
        page.load(name)
        page.ask("start", target=target, kinds={"code": "category"})

    try:
        begin()
        for _ in range(n):
            message = fuzz.message()
            answer = protocol.respond(workspace, message)
            failure, workspace.last_failure = workspace.last_failure, None
            if failure is not None:
                raise AssertionError(f"{message!r:.2000}") from failure
            text = json.dumps(answer, allow_nan=False)
            assert "root:" not in text
            (kind,) = answer
            told[kind] += 1
            if kind == "error":
                message_text = answer["error"]["message"]
                assert "Traceback" not in message_text
                assert message_text.endswith((".", ")", "]", "'")), message_text
            elif message["method"] in ("load", "reread", "start", "open"):
                begin()
        assert page.ask("state")["stage"] == "session"
    finally:
        workspace.close()
    return told


def campaign(n: int, seed: int) -> Counter[str]:
    """Send messages; return how many had a result, an error, or found a mistake."""
    done: Counter[str] = Counter()
    for number in range(seed, seed + math.ceil(n / SESSION)):
        try:
            done.update(run(number, min(SESSION, n)))
        except Exception:
            print(f"session {number}:\n{traceback.format_exc()[-3000:]}", flush=True)
            done["mistake"] += 1
    return done


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    started = time.monotonic()
    done = campaign(given.n, given.seed)
    print(f"{dict(done)} in {time.monotonic() - started:.0f} s")
    return 0 if done.keys() <= {"result", "error"} else 1


if __name__ == "__main__":
    sys.exit(main())
