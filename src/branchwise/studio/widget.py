"""The studio in a notebook: a widget whose state is a session.

The front end is the server's page, in a frame of its own, so that a notebook and the
page do not restyle each other. Its messages are custom messages of the widget:
``{"id", "method", "args"}`` from the page, ``{"id", "result"}`` or ``{"id", "error"}``
to it, and ``{"changed": number}`` after every step of the session, with the number of
the entry of the history that it is at.
"""

from __future__ import annotations

import json
import threading
from typing import Any

from branchwise.errors import ParameterError
from branchwise.studio import protocol
from branchwise.studio.page import style_and_script
from branchwise.studio.session import Session
from branchwise.studio.workspace import Workspace
from branchwise.text import as_html as html

try:
    import anywidget
    import traitlets
except ImportError as error:
    raise ImportError(
        f"The studio in a notebook needs the package {error.name}. Install it with: "
        "pip install 'branchwise[studio]'"
    ) from None

_ASSETS = "studio/assets"
#: The height of the page in pixels, by default.
_HEIGHT = 720
#: What the page of a widget cannot do, because it has one session, made in Python.
_IN_PYTHON = {
    "load": "start a session of it with branchwise.grow_by_hand",
    "reread": "read the table with branchwise.read_table",
    "start": "start another session with branchwise.grow_by_hand",
    "open": "open it with branchwise.open_session",
    "diff": "compare with session.diff(other)",
}


def front_end() -> str:
    """Return the ES module of the widget, which has the page as a text."""
    style, mounting = map(html.markup, style_and_script())
    script = mounting + "\n" + html.asset(f"{_ASSETS}/frame.js")
    page = html.page(
        f"{_ASSETS}/frame.html",
        policy=html.policy([style], [script]),
        style=style,
        script=script,
    )
    relay = str(html.asset(f"{_ASSETS}/widget.js"))
    return relay.replace('"{{ page }}"', json.dumps(page))


class StudioWidget(anywidget.AnyWidget):  # type: ignore[misc]
    """The studio in a notebook, as the last value of a cell.

    What is done on the page is done in the session, and the page follows what other
    cells do with the session.

    Parameters
    ----------
    session : Session
        What :func:`~branchwise.grow_by_hand` or :func:`~branchwise.open_session`
        returns.
    height : int, default=720
        The height of the page in pixels.
    """

    _esm = front_end()
    height = traitlets.Int(_HEIGHT).tag(sync=True)
    _listening = False

    def __init__(self, session: Session, height: int = _HEIGHT) -> None:
        if not isinstance(session, Session):
            raise ParameterError(
                "session must be a session, as branchwise.grow_by_hand returns it. Got "
                f"{type(session).__name__}."
            )
        super().__init__(height=height)
        self.session = session
        self._workspace = Workspace()
        self._workspace.open_session_of(session)
        self._told = session.history.current
        self._responding = False
        self.on_msg(lambda _, content, __: self._receive(content))
        session.history.listeners.append(self._tell)
        self._listening = True

    def close(self) -> None:
        """Close the page; the session stays as it is."""
        if self._listening:
            self.session.history.listeners.remove(self._tell)
            self._listening = False
        super().close()

    def _receive(self, message: Any) -> None:
        """Respond to a message of the page; scores take seconds, in a thread."""
        given = message if isinstance(message, dict) else {}
        if given.get("method") == "score":
            threading.Thread(target=self._respond, args=(given,), daemon=True).start()
            return
        # The page knows of its own steps by the response, which comes first.
        self._responding = True
        try:
            self._respond(given)
        finally:
            self._responding = False
        self._tell()

    def _respond(self, message: dict[str, Any]) -> None:
        self.send({"id": message.get("id"), **self._response(message)})

    def _response(self, message: dict[str, Any]) -> dict[str, Any]:
        method = message.get("method")
        if isinstance(method, str) and method in _IN_PYTHON:
            words = f"In a notebook this is done in Python: {_IN_PYTHON[method]}."
            return {"error": {"message": words, "parameter": None}}
        request = {
            name: message[name] for name in ("method", "args") if name in message
        }
        return protocol.respond(self._workspace, request)

    def _tell(self) -> None:
        """Let the pages follow the session, which may be shown more than once."""
        number = self.session.history.current
        if not self._responding and number != self._told:
            self._told = number
            self.send({"changed": number})
