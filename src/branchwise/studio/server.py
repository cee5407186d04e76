"""The local server of the page: a token in the address, limits, nothing from outside.

The page is at ``http://127.0.0.1:PORT/TOKEN/``. A request is served only if it names
this computer as the host, has the token in its path, is for one of a fixed list of
files or sends a message, and, where it changes something, comes from the page itself.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
import socket
import threading
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from branchwise.errors import DataError, ParameterError
from branchwise.studio import protocol
from branchwise.studio.page import page_files
from branchwise.studio.workspace import Workspace

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

#: The only address that the server listens at.
LOOPBACK = "127.0.0.1"
#: The most bytes of a message, and by default of an uploaded table.
MOST_MESSAGE = 1_000_000
MOST_UPLOAD = 500_000_000
#: The most connections at a time; what is beyond is refused with status 503.
MOST_CONNECTIONS = 200
#: Messages that are worked on at a time, each in a thread of its own; most wait for
#: the workspace, only scores are computed beside it.
_MOST_THREADS = 8
#: Seconds that an idle connection is kept, and that running work has at the end.
_KEEP_ALIVE = 5
_GRACE = 1
#: Seconds that a connection has to send the head of its first request.
PATIENCE = 10.0
#: Scripts and styles of this server alone, no connection to others, no frame.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: "
    "blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Refusal(Exception):  # noqa: N818  (a response, not a failure)
    """A request that is not served: its status, and a sentence that says why."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class StudioApp:
    """The ASGI application of one workspace.

    Parameters
    ----------
    workspace : Workspace
        What the page works on.
    token : str
        The secret that is in the path of every request.
    port : int
        The port that the server listens at, which ``Host`` must name.
    max_upload : int
        The most bytes of an uploaded table.
    """

    def __init__(
        self,
        workspace: Workspace,
        token: str,
        port: int,
        max_upload: int = MOST_UPLOAD,
    ) -> None:
        self.workspace = workspace
        self.max_upload = max_upload
        self._token = token.encode("ascii")
        self._hosts = frozenset(f"{name}:{port}" for name in (LOOPBACK, "localhost"))
        # A request is only looked up here: no path of it reaches the file system.
        self._files = page_files()
        self._entries: set[str] = set()
        self._uploading = False
        self._limiter: Any = None

    def one_time_path(self) -> str:
        """Return a path that leads to the page once.

        The command that opens a browser is seen by all users of the computer: what it
        shows must be of no use afterwards.
        """
        entry = secrets.token_urlsafe(24)
        self._entries.add(entry)
        return f"/open/{entry}"

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve a request; nothing that it holds may stop the server."""
        from starlette.requests import Request  # noqa: PLC0415

        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        try:
            response = await self._response(request)
        except Refusal as refusal:
            response = _json(_error(str(refusal)), refusal.status)
        await response(scope, receive, send)

    async def _response(self, request: Request) -> Response:
        host = request.headers.get("host", "")
        if host not in self._hosts:
            raise Refusal(403, "Host must be the address that branchwise printed.")
        path = str(request.scope["path"])
        entry = path.removeprefix("/open/")
        if entry in self._entries and request.method == "GET":
            return self._entered(entry)
        given, _, name = path.removeprefix("/").partition("/")
        if not hmac.compare_digest(given.encode("utf-8", "replace"), self._token):
            raise Refusal(
                403,
                "The address lacks the token of this studio. Open the address that "
                "branchwise printed.",
            )
        if name in ("api", "upload"):
            _check_origin(request, host)
            handler = self._message if name == "api" else self._upload
            return await handler(request)
        return self._file(request, name or "index.html")

    def _entered(self, entry: str) -> Response:
        from starlette.responses import RedirectResponse  # noqa: PLC0415

        self._entries.discard(entry)
        token = self._token.decode("ascii")
        return RedirectResponse(f"/{token}/", 303, headers=_HEADERS)

    def _file(self, request: Request, name: str) -> Response:
        from starlette.responses import Response  # noqa: PLC0415

        if name not in self._files:
            raise Refusal(404, "There is no such file.")
        if request.method not in ("GET", "HEAD"):
            raise Refusal(405, "Files are read with GET.")
        media_type, content = self._files[name]
        return Response(content, media_type=media_type, headers=_HEADERS)

    async def _message(self, request: Request) -> Response:
        """Respond to a message of the page, in a thread."""
        if _media_type(request) != "application/json":
            raise Refusal(415, "A message must have the content type application/json.")
        body = bytearray()
        async for chunk in _limited(request, MOST_MESSAGE, "A message"):
            body += chunk
        try:
            message = json.loads(body)
        except (ValueError, RecursionError):
            raise Refusal(400, "The message is not valid JSON.") from None
        return await self._in_thread(protocol.response_text, self.workspace, message)

    async def _upload(self, request: Request) -> Response:
        """Write an uploaded table to a temporary file, then read it in a thread."""
        if _media_type(request) != "application/octet-stream":
            raise Refusal(
                415, "A table must have the content type application/octet-stream."
            )
        name = unquote(request.headers.get("x-file-name", ""))
        if not name:
            raise Refusal(400, "X-File-Name must hold the name of the file.")
        if self._uploading:
            raise Refusal(409, "Another table is being uploaded. Wait for its end.")
        self._uploading = True
        try:
            with self.workspace.receiving(name) as file:
                async for chunk in _limited(request, self.max_upload, "A table"):
                    file.write(chunk)
            return await self._in_thread(protocol.loaded_text, self.workspace)
        except OSError:
            raise Refusal(507, "The table cannot be stored here.") from None
        finally:
            self._uploading = False

    async def _in_thread(self, compute: Callable[..., str], *given: object) -> Response:
        from anyio import CapacityLimiter, to_thread  # noqa: PLC0415

        if self._limiter is None:
            self._limiter = CapacityLimiter(_MOST_THREADS)
        call = partial(compute, *given)
        # A thread cannot be stopped: at the end the server does not wait for it.
        text: str = await to_thread.run_sync(
            call, abandon_on_cancel=True, limiter=self._limiter
        )
        return _json_response(text, 200)


def _media_type(request: Request) -> str:
    given: str = request.headers.get("content-type", "")
    return given.partition(";")[0].strip().lower()


def _check_origin(request: Request, host: str) -> None:
    """Refuse what other pages send: forms, scripts and frames of other sites."""
    if request.method != "POST":
        raise Refusal(405, "Messages are sent with POST.")
    if request.headers.get("origin") != f"http://{host}":
        raise Refusal(403, "Origin must be the address of the studio.")
    if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        raise Refusal(403, "Only the page of the studio may send messages.")


async def _limited(request: Request, most: int, what: str) -> Any:
    """Yield the body of a request; refuse it as soon as it is too large."""
    from starlette.requests import ClientDisconnect  # noqa: PLC0415

    refusal = Refusal(413, f"{what} may have at most {most:,} bytes.")
    declared = request.headers.get("content-length", "0")
    if not declared.isdecimal() or int(declared[:20]) > most:
        raise refusal
    size = 0
    try:
        async for chunk in request.stream():
            size += len(chunk)
            if size > most:
                raise refusal
            yield chunk
    except ClientDisconnect:
        raise Refusal(400, f"{what} was not sent to its end.") from None


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "parameter": None}}


def _json(value: Mapping[str, Any], status: int) -> Response:
    return _json_response(json.dumps(value), status)


def _json_response(text: str, status: int) -> Response:
    from starlette.responses import Response  # noqa: PLC0415

    return Response(text, status, _HEADERS, "application/json")


def check_installed() -> None:
    """Raise an error with the command to install what the server needs."""
    try:
        import starlette.requests  # noqa: F401, PLC0415
        import uvicorn  # noqa: F401, PLC0415
    except ImportError as error:
        raise ParameterError(
            f"branchwise studio needs the package {error.name}. Install it with: pip "
            "install 'branchwise[studio]'"
        ) from None


def listening_socket(port: int) -> socket.socket:
    """Return a socket that listens at a port of this computer; 0 is any free one."""
    try:
        return socket.create_server((LOOPBACK, port), backlog=MOST_CONNECTIONS)
    except OSError as error:
        raise DataError(
            f"--port {port} cannot be used: {error.strerror}. Give another one, or "
            "leave it out to take any that is free."
        ) from None


def serve(
    workspace: Workspace,
    *,
    port: int = 0,
    max_upload: int = MOST_UPLOAD,
    on_ready: Callable[[str, str], object] | None = None,
) -> None:
    """Serve the page until Ctrl-C.

    Parameters
    ----------
    workspace : Workspace
        What the page works on.
    port : int, default=0
        The port; 0 is any free one.
    max_upload : int
        The most bytes of an uploaded table.
    on_ready : callable or None
        Called with the address of the page, and with one that leads there once, as soon
        as they can be opened.
    """
    check_installed()
    # Scores need packages that take seconds to import: meanwhile the page is shown.
    scores = "branchwise.studio.scores"
    threading.Thread(target=import_module, args=(scores,), daemon=True).start()
    with listening_socket(port) as listening:
        port = listening.getsockname()[1]
        token = secrets.token_urlsafe(32)
        app = StudioApp(workspace, token, port, max_upload)
        root = f"http://{LOOPBACK}:{port}"
        if on_ready is not None:
            on_ready(f"{root}/{token}/", root + app.one_time_path())
        asyncio.run(server_of(app).serve(sockets=[listening]))


def server_of(app: StudioApp) -> Any:
    """Return the uvicorn server of an application: one process, few connections."""
    import uvicorn  # noqa: PLC0415
    from uvicorn.protocols.http.h11_impl import H11Protocol  # noqa: PLC0415

    class Impatient(H11Protocol):  # type: ignore[misc]
        """Closes connections that only take the place of others."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.loop.call_later(PATIENCE, self.close_silent)

        def close_silent(self) -> None:
            if self.cycle is None and not self.transport.is_closing():
                self.transport.close()

    config = uvicorn.Config(
        app,
        http=Impatient,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        # No proxy is in front: what such headers say is not to be believed.
        proxy_headers=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=_GRACE,
    )
    return uvicorn.Server(config)
