"""What a page works on: a table, corrections of its columns, and a session.

Every method that a message may call is here; ``protocol`` checks the arguments. One
lock lets a single call at a time at the session; scores and exports are computed
beside it.
"""

from __future__ import annotations

import base64
import binascii
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import wraps
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import IO, Any, TypeVar, cast

from branchwise.data.table_schema import Value
from branchwise.data.target import learn_target
from branchwise.errors import BranchwiseError, DataError, ParameterError, json_text
from branchwise.files.options import Reading
from branchwise.files.read_table import MISSING
from branchwise.recipe import Recipe
from branchwise.studio.actions import read_recipe
from branchwise.studio.history import read_lines
from branchwise.studio.page_data.calls import Calls
from branchwise.studio.page_data.loaded_table import (
    KINDS,
    MOST_DECOMPRESSED,
    LoadedTable,
    check_uploaded,
    is_uploadable,
    shown_name,
    unread_summary,
)
from branchwise.studio.page_data.recipe_options import (
    algorithms,
    recipe_choices,
    recipe_of_options,
)
from branchwise.studio.page_data.session_view import SessionView, exported
from branchwise.studio.page_data.teaching import Teaching
from branchwise.studio.page_data.uploads import Upload, Uploads
from branchwise.studio.session import Session, grow_by_hand, open_session

#: How uploads are read.
_UPLOAD = Reading(max_size=MOST_DECOMPRESSED)
#: The algorithm where none is chosen.
_BY_TARGET = {"name": "", "words": "C4.5 for classes, CART for numbers"}
Method = TypeVar("Method", bound=Callable[..., Any])


def _exclusive(method: Method) -> Method:
    """Let one call at a time at the workspace; a score in progress waits for it."""

    @wraps(method)
    def run(self: Workspace, *args: Any, **kwargs: Any) -> Any:
        with self.calls, self.lock:
            return method(self, *args, **kwargs)

    return cast("Method", run)


class Workspace:
    """What one page works on.

    Parameters
    ----------
    journal : str or None
        A file that keeps every action of the session as soon as it is done.
    """

    def __init__(self, journal: str | None = None) -> None:
        self.journal = journal
        self.lock = threading.RLock()
        self.calls = Calls()
        #: One score or export at a time, beside edits: each has all of a processor.
        self._computing = threading.Lock()
        self.table: LoadedTable | None = None
        self.teaching_mode = Teaching()
        #: The last mistake of branchwise itself, for its developers.
        self.last_failure: Exception | None = None
        self._summary: dict[str, Any] | None = None
        self._view: SessionView | None = None
        #: Corrections of columns, and those that the command line has made.
        self._kinds: dict[str, str] = {}
        self._suggested: dict[str, str] = {}
        self._uploads = Uploads()
        #: An uploaded file that could not be read with the usual options.
        self._unread: Upload | None = None

    def close(self) -> None:
        """Close the session, and remove the files of uploaded tables."""
        if self._view is not None:
            self._view.session.close()
            self._view = None
        self._uploads.close()

    def failed(self, error: Exception) -> None:
        """Keep a mistake of branchwise itself; the page is not told its details."""
        self.last_failure = error

    # -- Tables

    def receiving(self, name: str) -> AbstractContextManager[IO[bytes]]:
        """Open a new file for a table that is uploaded; keep it if it is whole."""
        return self._uploads.receiving(name)

    @_exclusive
    def received(self) -> dict[str, Any]:
        """Read the table that was uploaded; it takes the place of the last one."""
        upload = self._uploads.taken()
        self._forget_unread()
        try:
            check_uploaded(*upload)
            loaded = LoadedTable.of_file(*upload, _UPLOAD)
        except BaseException as error:
            if isinstance(error, BranchwiseError) and is_uploadable(upload.path):
                # Perhaps it can be read with other options.
                self._unread = upload
            else:
                self._uploads.remove(upload.path)
            raise
        return self._take(loaded)

    def _forget_unread(self) -> None:
        """Remove a file that could not be read."""
        if self._unread is not None:
            self._uploads.remove(self._unread.path)
        self._unread = None

    @_exclusive
    def load(self, name: str, content: str) -> dict[str, Any]:
        """Read a table from its content, as base64."""
        try:
            raw = base64.b64decode(content, validate=True)
        except (ValueError, binascii.Error):
            raise ParameterError("content must be a file as base64.") from None
        with self.receiving(name) as file:
            file.write(raw)
        return self.received()

    @_exclusive
    def open_file(
        self,
        path: str,
        reading: Reading | None = None,
        missing: Sequence[str] = MISSING,
    ) -> dict[str, Any]:
        """Read a table of this computer: for the command line, never for the page."""
        return self._take(LoadedTable.of_file(path, shown_name(path), reading, missing))

    @_exclusive
    def reread(self, reading: Mapping[str, Any]) -> dict[str, Any]:
        """Read a file with other options, such as another sheet.

        It is that of the table, or one that could not be read as it is.
        """
        if self._unread is None:
            return self._take(self.loaded.reread(reading))
        loaded = LoadedTable.of_options(*self._unread, reading, _UPLOAD)
        self._unread = None
        return self._take(loaded)

    def _take(self, loaded: LoadedTable) -> dict[str, Any]:
        """Work on another table; there is no session of it yet."""
        summary = loaded.summary()
        old, self.table, self._summary = self.table, loaded, summary
        if old is not None and old.path != loaded.path:
            self._uploads.remove(old.path)
        self._forget_unread()
        if self._view is not None:
            self._view.session.close()
        self._view, self._kinds, self._suggested = None, {}, {}
        self.teaching_mode = Teaching()
        return summary

    @property
    def loaded(self) -> LoadedTable:
        """The table; there must be one."""
        if self.table is None:
            raise DataError("There is no table yet. Upload one first.")
        return self.table

    def suggest(self, kinds: Mapping[str, str]) -> None:
        """Correct columns before the page has chosen a target, which may change it."""
        self._kinds = self._suggested = dict(kinds)
        for column in (self._summary or {}).get("columns", ()):
            column["kind"] = kinds.get(column["name"], column["kind"])

    # -- Sessions

    @_exclusive
    def state(self) -> dict[str, Any]:
        """Return all that the page shows."""
        found = {
            "stage": "empty" if self.table is None else "table",
            "table": self._summary,
            "unread": None if self._unread is None else unread_summary(*self._unread),
            "kinds": self._kinds,
            "teaching": self.teaching_mode.state(),
            "parameters": recipe_choices(),
        }
        if self._view is not None:
            return found | {"stage": "session", **self._view.state()}
        return found | {"recipes": [_BY_TARGET, *algorithms(False)]}

    @_exclusive
    def start(
        self,
        target: str,
        positive: Value | None = None,
        kinds: Mapping[str, str] | None = None,
        recipe: Mapping[str, Any] | None = None,
        validation_fraction: float | None = None,
    ) -> dict[str, Any]:
        """Begin a session with what the page has chosen."""
        given = dict(recipe or {})
        corrected = {**self._suggested, **(kinds or {})}
        table = self.loaded
        table.check_kinds(target, corrected)
        regression = given.get("regression")
        if regression is None:
            regression = table.is_regression(target, corrected)
        if not isinstance(regression, bool):
            raise ParameterError(
                f"regression must be true or false. Got {regression!r:.60}."
            )
        chosen = recipe_of_options(given, regression)
        share = None if validation_fraction is None else float(validation_fraction)
        self.begin(
            target, chosen, corrected, positive=positive, validation_fraction=share
        )
        return self.state()

    @_exclusive
    def begin(
        self,
        target: str,
        recipe: Recipe,
        kinds: Mapping[str, str],
        positive: Value | None = None,
        **options: Any,
    ) -> None:
        """Begin a session; ``options`` are those of ``grow_by_hand``."""
        weight = options.get("sample_weight")
        others = [weight] if isinstance(weight, str) else []
        table = self.loaded
        rows = table.read(target, kinds, recipe.is_regression, others)
        known = {name: value for name, value in options.items() if value is not None}
        if callable(weigh := known.get("class_weight")):
            # A session is kept as text, which holds weights by class.
            known["class_weight"] = weigh(learn_target(rows[target])[0])
        try:
            journal = self._next_journal()
            session = grow_by_hand(rows, target, recipe, journal=journal, **known)
        except DataError as error:
            raise table.located(error) from None
        self._use(session, kinds, positive)

    def open_session_of(self, session: Session) -> None:
        """Show a session that was made in Python, on the rows that it has."""
        self._use(session, {}, None)

    def _use(
        self, session: Session, kinds: Mapping[str, str], positive: Value | None
    ) -> None:
        view = SessionView(session)
        view.choose(positive)
        if self._view is not None:
            self._view.session.close()
        self._view, self._kinds = view, dict(kinds)
        self.teaching_mode = Teaching()

    @property
    def view(self) -> SessionView:
        """The session; there must be one."""
        if self._view is None:
            raise DataError(
                "There is no session yet. Choose the column to predict first."
            )
        return self._view

    @_exclusive
    def apply(self, action: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out an action."""
        changed = self.view.apply(action)
        if action.get("do") != "note":
            self.teaching_mode.forget(changed["at"])
        return changed

    @_exclusive
    def undo(self) -> dict[str, Any]:
        """Go back to before the last action."""
        return self._moved(self.view.session.undo)

    @_exclusive
    def redo(self) -> dict[str, Any]:
        """Do again what was undone last."""
        return self._moved(self.view.session.redo)

    @_exclusive
    def goto(self, number: int) -> dict[str, Any]:
        """Go to an entry of the history."""
        return self._moved(lambda: self.view.session.goto(number))

    def _moved(self, move: Callable[[], None]) -> dict[str, Any]:
        changed = self.view.move(move)
        self.teaching_mode.forget(changed["at"])
        return changed

    @_exclusive
    def candidates(self, node: str) -> list[dict[str, Any]]:
        """Return what every column can do for a node."""
        found = self.view.candidates(node)
        return self.teaching_mode.shown(node, found, self.view.columns)

    @_exclusive
    def preview(self, node: str, column: str, **how: Any) -> dict[str, Any]:
        """Return the figures of a split that is not made."""
        found = self.view.preview(node, column, **how)
        return self.teaching_mode.shown(node, [found], self.view.columns)[0]

    @_exclusive
    def distribution(self, node: str, column: str) -> dict[str, Any]:
        """Return how the values of a column are distributed at a node."""
        return self.view.distribution(node, column)

    @_exclusive
    def node(self, node: str, **how: Any) -> dict[str, Any]:
        """Return the rows of a node, its path, and its worked computation."""
        if how.get("worked") and self.teaching_mode.hides(node):
            raise ParameterError(
                f"node {node!r} is worked out when it has been revealed. Guess its "
                "column first."
            )
        return self.view.node(node, **how)

    def score(self, **how: Any) -> dict[str, Any]:
        """Return the score of the tree beside that of the automatic one.

        It may take seconds, in which the session can be edited: the score waits for
        other calls, and ends where they have changed the tree.
        """
        # Slow to import: not while the session waits.
        import_module("branchwise.studio.scores")
        with self.calls, self.lock:
            view = self.view
            number = view.session.history.current

            def give_way() -> None:
                self.calls.wait()
                if self._view is not view or view.session.history.current != number:
                    raise ParameterError(
                        "The tree was changed while it was scored. Score it again."
                    )

            compute = view.session.scoring(**how, pause=give_way)
        with self._computing:
            return {**compute().to_dict(), "number": number}

    @_exclusive
    def explain(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Explain the prediction for a row."""
        return self.view.explain(row)

    def export(
        self, target: str, options: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Return the model in another language, verified; it may take seconds."""
        with self.lock:
            model = self.view.session.model
        with self._computing:
            return exported(model, target, options)

    @_exclusive
    def script(self) -> dict[str, Any]:
        """Return Python code that reads the table and replays the session."""
        code = self.view.session.script()
        if self.table is None:
            return {"text": code}
        read = self.table.in_python(self._kinds)
        begin = "\nsession = "
        return {"text": code.replace(begin, f"\n{read}{begin}", 1)}

    @_exclusive
    def save(self) -> dict[str, Any]:
        """Return the content of the file of actions."""
        name = "session" if self.table is None else self.table.name
        stem = name.partition(".")[0]
        header, _, actions = self.view.session.to_text().partition("\n")
        kept = {"kinds": self._kinds, "positive": self.view.positive}
        first = json_text({**json.loads(header), "studio": kept})
        return {"name": f"{stem}.actions.json", "content": f"{first}\n{actions}"}

    @_exclusive
    def open(self, content: str) -> dict[str, Any]:
        """Go on with a session that was saved."""
        session, kinds, positive = self._opened(content)
        journal = self._next_journal()
        if journal is not None:
            session.continue_journal(journal)
        self._use(session, kinds, positive)
        return self.state()

    @_exclusive
    def reopen(self, path: str, kinds: Mapping[str, str]) -> None:
        """Go on with a session of a file of this computer, for the command line."""
        self._kinds = dict(kinds)
        content = Path(path).read_text("utf-8")
        session, kinds, positive = self._opened(content)
        if self.journal is not None:
            session.continue_journal(self.journal)
        self._use(session, kinds, positive)

    def _next_journal(self) -> str | None:
        """Return a new file for the actions of a session: each one has its own."""
        if self.journal is None:
            return None
        path = first = Path(self.journal)
        stem, ending = first.name.partition(".")[::2]
        for number in count(2):
            if not path.exists():
                break
            path = first.with_name(f"{stem}-{number}.{ending}")
        return str(path)

    def _opened(self, content: str) -> tuple[Session, Mapping[str, str], Value | None]:
        """Open a file of actions on the table of the page."""
        header, _ = read_lines(content.encode("utf-8", "replace"), "the session")
        if isinstance(header.get("labels"), str):
            raise DataError(
                "The session has its labels in a file, which is not read. Open it in "
                "Python: branchwise.open_session."
            )
        kinds, positive = _kept(header)
        kinds = {**kinds, **self._kinds}
        target = header.get("target")
        if not isinstance(target, str):
            raise DataError(
                "The session does not name its target. Open it in Python: "
                "branchwise.open_session."
            )
        recipe = read_recipe(header.get("recipe"))
        regression = recipe is not None and recipe.is_regression
        table = self.loaded
        rows = table.read(target, table.known_kinds(kinds), regression)
        with self._uploads.stored(content) as stored:
            session = open_session(stored, rows, n_jobs=None)
        return session, kinds, positive

    @_exclusive
    def diff(self, other: str) -> dict[str, Any]:
        """Compare the session with another one of the same table."""
        return self.view.diff(self._opened(other)[0])

    # -- Teaching

    @_exclusive
    def teaching(self, on: bool) -> dict[str, Any]:
        """Switch teaching mode on or off."""
        self.teaching_mode.switch(on)
        return self.teaching_mode.state()

    @_exclusive
    def guess(self, node: str, column: str) -> dict[str, Any]:
        """Keep the column that the class chooses for a node."""
        self.view.check_column(column)
        self.teaching_mode.guess(self.view.session.path(node), column)
        return self.teaching_mode.state()

    @_exclusive
    def reveal(self, node: str) -> dict[str, Any]:
        """Show the figures of a node, and give points for the guess."""
        found = self.view.candidates(node)
        return {**self.teaching_mode.reveal(node, found), "candidates": found}


def _kept(header: Mapping[str, Any]) -> tuple[dict[str, str], Value | None]:
    """Return the corrections and the class that the page has kept in a file."""
    kept = header.get("studio")
    kept = kept if isinstance(kept, Mapping) else {}
    kinds, positive = kept.get("kinds"), kept.get("positive")
    kinds = kinds if isinstance(kinds, Mapping) else {}
    known = {n: k for n, k in kinds.items() if isinstance(n, str) and k in KINDS}
    plain = positive is None or isinstance(positive, (str, int, float, bool))
    return known, positive if plain else None
