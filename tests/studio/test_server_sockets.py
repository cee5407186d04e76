"""The server on a real socket: bytes that are no requests, and very many of them."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from contextlib import contextmanager, suppress

import pytest

from branchwise.studio import server
from branchwise.studio.server import StudioApp, listening_socket, server_of
from branchwise.studio.workspace import Workspace

pytest.importorskip("uvicorn")
TOKEN = "a-token-of-this-test"


class Running:
    """A server in a thread, and requests to it byte by byte."""

    def __init__(self):
        self.socket = listening_socket(0)
        self.port = self.socket.getsockname()[1]
        self.workspace = Workspace()
        self.server = server_of(
            StudioApp(self.workspace, TOKEN, self.port, max_upload=300_000)
        )
        serving = self.server.serve(sockets=[self.socket])
        self.thread = threading.Thread(target=lambda: asyncio.run(serving))
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)

    def stop(self):
        self.server.should_exit = True
        self.thread.join(10)
        self.socket.close()
        self.workspace.close()
        assert not self.thread.is_alive()

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=20)

    def head(self, name, *lines, kind="application/json"):
        host = f"127.0.0.1:{self.port}"
        first = [
            f"POST /{TOKEN}/{name} HTTP/1.1",
            f"Host: {host}",
            f"Origin: http://{host}",
            f"Content-Type: {kind}",
            "Connection: close",
            *lines,
        ]
        return "\r\n".join(first).encode() + b"\r\n\r\n"

    def message(self, message=b'{"method": "state"}'):
        return self.head("api", f"Content-Length: {len(message)}") + message

    def answer(self, content):
        """Send bytes, and return the status and the body of the answer."""
        with self.connect() as connection:
            return exchange(connection, content)

    def is_well(self):
        status, body = self.answer(self.message())
        return status == 200 and "result" in json.loads(body)


def exchange(connection, content):
    received = b""
    with suppress(ConnectionError):  # it has been refused already
        connection.sendall(content)
    with suppress(ConnectionError):
        while chunk := connection.recv(65_536):
            received += chunk
    head, _, body = received.partition(b"\r\n\r\n")
    words = head.split(b" ", 2)
    return int(words[1]) if len(words) > 1 else 0, body


@pytest.fixture(scope="module", name="running")
def running_server():
    running = Running()
    yield running
    running.stop()


def chunked(size, piece=10_000):
    """Return a body of unknown length, in chunks."""
    chunk = b"%x\r\n" % piece + b" " * piece + b"\r\n"
    return chunk * (size // piece) + b"0\r\n\r\n"


def test_a_message_is_answered(running):
    assert running.is_well()


def test_a_body_of_unknown_length_is_cut_off_at_the_limit(running):
    before = running.workspace.table
    head = running.head("api", "Transfer-Encoding: chunked")
    # Without an answer the connection was closed while the rest was being sent.
    assert running.answer(head + chunked(3_000_000))[0] in (413, 0)
    head = running.head(
        "upload",
        "Transfer-Encoding: chunked",
        "X-File-Name: a.csv",
        kind="application/octet-stream",
    )
    assert running.answer(head + chunked(3_000_000))[0] in (413, 0)
    assert running.workspace.table is before
    assert running.is_well()


def test_a_declared_length_is_refused_without_reading(running):
    head = running.head("api", "Content-Length: 999999999999")
    assert running.answer(head)[0] == 413


def test_an_upload_may_end_too_early(running):
    head = running.head(
        "upload",
        "Content-Length: 90000",
        "X-File-Name: a.csv",
        kind="application/octet-stream",
    )
    before = running.workspace.table
    with running.connect() as connection:
        connection.sendall(head + b"a,b\n1,2\n")
    assert running.is_well()
    assert running.workspace.table is before
    # Another one may follow: the first has let go of its place.
    content = b"a,b\n1,x\n2,y\n"
    head = running.head(
        "upload",
        f"Content-Length: {len(content)}",
        "X-File-Name: a.csv",
        kind="application/octet-stream",
    )
    for _ in range(100):
        status, body = running.answer(head + content)
        if status != 409:
            break
        time.sleep(0.02)
    assert json.loads(body)["result"]["n_rows"] == 2


@pytest.mark.parametrize(
    "content",
    [
        b"\x16\x03\x01\x02\x00\x01\x00" * 20,
        b"GET " + b"/" * 200_000 + b" HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\n\r\n",
        b"GET /../../../../etc/passwd HTTP/1.0\r\nHost: x\r\n\r\n",
        b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"A: " + b"b" * 100_000,
        b"\r\n" * 50_000,
    ],
)
def test_bytes_that_are_no_request_of_ours_are_refused(running, content):
    with running.connect() as connection:
        connection.sendall(content[:65_536])
        connection.shutdown(socket.SHUT_WR)
        status, body = exchange(connection, b"")
    assert status == 0 or 400 <= status < 500
    assert b"root:" not in body
    assert running.is_well()


def test_a_socket_is_not_upgraded(running):
    head = running.head(
        "api",
        "Upgrade: websocket",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version: 13",
        "Content-Length: 0",
    ).replace(b"Connection: close", b"Connection: Upgrade, close")
    assert running.answer(head)[0] != 101
    assert running.is_well()


@contextmanager
def closing_all(connections):
    try:
        yield
    finally:
        for connection in connections:
            connection.close()


def many(running, n):
    """Open connections, send a message through each, and count the answers."""
    open_ones, statuses = [], []
    with closing_all(open_ones):
        for _ in range(n):
            connection = socket.socket()
            connection.settimeout(20)
            connection.connect(("127.0.0.1", running.port))
            open_ones.append(connection)
        for connection in open_ones:
            try:
                connection.sendall(running.message())
            except ConnectionError:
                statuses.append(0)
        statuses += [exchange(connection, b"")[0] for connection in open_ones]
    return statuses


def test_fifty_connections_at_a_time_are_served(running):
    assert set(many(running, 50)) == {200}


def test_silent_connections_are_closed(running, monkeypatch):
    """As many as there may be do not keep others out for long."""
    monkeypatch.setattr(server, "PATIENCE", 0.2)
    silent = [running.connect() for _ in range(server.MOST_CONNECTIONS + 10)]
    with closing_all(silent):
        silent[0].sendall(b"POST /")
        for connection in silent:
            assert connection.recv(10) == b""
        assert running.is_well()


@pytest.mark.slow
def test_a_thousand_connections_are_refused_or_served(running):
    import resource

    low, high = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(high, 4_096), high))
    try:
        statuses = many(running, 1_000)
    finally:
        time.sleep(0.5)
        resource.setrlimit(resource.RLIMIT_NOFILE, (low, high))
    assert len(statuses) == 1_000
    assert set(statuses) <= {200, 503}
    assert statuses.count(503) > 0
    assert running.is_well()
