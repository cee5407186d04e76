"""The local server: who may ask, what for, and how much."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from branchwise.studio import server
from branchwise.studio.page import page_files
from branchwise.studio.server import MOST_MESSAGE, StudioApp
from branchwise.studio.workspace import Workspace

httpx = pytest.importorskip("httpx")
pytest.importorskip("starlette")
PORT = 8123
ORIGIN = f"http://127.0.0.1:{PORT}"
TOKEN = "a-token-of-this-test"
CSV = b"outlook,wind,play\nsunny,weak,no\nrainy,strong,yes\nsunny,strong,no\n"


@pytest.fixture(name="workspace")
def empty_workspace():
    workspace = Workspace()
    yield workspace
    workspace.close()


@pytest.fixture(name="ask")
def asking(workspace):
    """Return a function that sends a request to the application and returns all."""
    import asyncio

    app = StudioApp(workspace, TOKEN, PORT, max_upload=2_000)

    def ask(method, path, content=b"", host=None, **headers):
        async def send():
            transport = httpx.ASGITransport(app=app)
            async with httpx.AsyncClient(transport=transport, base_url=ORIGIN) as http:
                named = {k.replace("_", "-"): v for k, v in headers.items()}
                if host is not None:
                    named["host"] = host
                return await http.request(method, path, content=content, headers=named)

        return asyncio.run(send())

    ask.app = app
    return ask


def sent(ask, message, path=f"/{TOKEN}/api", **headers):
    given = {"origin": ORIGIN, "content_type": "application/json", **headers}
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return ask("POST", path, body, **given)


def uploaded(ask, content=CSV, name="play.csv", **headers):
    given = {
        "origin": ORIGIN,
        "content_type": "application/octet-stream",
        "x_file_name": name,
        **headers,
    }
    return ask("POST", f"/{TOKEN}/upload", content, **given)


def refused(response, status, words):
    assert response.status_code == status, response.text
    assert words in response.json()["error"]["message"]
    assert set(response.json()) == {"error"}


# -- Who may ask


def test_a_message_with_all_it_needs_is_answered(ask):
    response = sent(ask, {"method": "state"})
    assert response.status_code == 200
    assert response.json()["result"]["stage"] == "empty"
    assert response.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    "path", ["/", "/api", "/wrong/api", f"/{TOKEN}x/api", f"/{TOKEN[:-1]}/api", "//api"]
)
def test_without_the_token_nothing_is_answered(ask, path):
    refused(sent(ask, {"method": "state"}, path), 403, "lacks the token")
    refused(ask("GET", path), 403, "lacks the token")


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        f"evil.example:{PORT}",
        "127.0.0.1",
        f"127.0.0.1:{PORT + 1}",
        f"127.0.0.1.evil.example:{PORT}",
        "",
    ],
)
def test_the_host_must_be_this_computer(ask, host):
    """A page whose name is made to lead to 127.0.0.1 (DNS rebinding) is refused."""
    refused(sent(ask, {"method": "state"}, host=host), 403, "Host must be")
    refused(ask("GET", f"/{TOKEN}/", host=host), 403, "Host must be")


def test_localhost_is_a_name_of_this_computer(ask):
    host = f"localhost:{PORT}"
    assert sent(ask, {"method": "state"}, host=host, origin=f"http://{host}").is_success
    # The origin must be that of the very address.
    refused(sent(ask, {"method": "state"}, host=host), 403, "Origin")


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        f"https://127.0.0.1:{PORT}",
        f"http://127.0.0.1:{PORT + 1}",
        f"{ORIGIN}.evil.example",
        "",
    ],
)
def test_other_origins_are_refused(ask, origin):
    refused(sent(ask, {"method": "state"}, origin=origin), 403, "Origin")
    refused(uploaded(ask, origin=origin), 403, "Origin")


def test_messages_without_origin_are_refused(ask):
    response = ask("POST", f"/{TOKEN}/api", b"{}", content_type="application/json")
    refused(response, 403, "Origin")


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none"])
def test_what_the_browser_calls_another_site_is_refused(ask, site):
    refused(sent(ask, {"method": "state"}, sec_fetch_site=site), 403, "Only the page")


@pytest.mark.parametrize(
    "kind",
    ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain", ""],
)
def test_forms_of_other_sites_have_no_content_type_of_ours(ask, kind):
    refused(sent(ask, {"method": "state"}, content_type=kind), 415, "application/json")
    refused(uploaded(ask, content_type=kind), 415, "application/octet-stream")


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS", "HEAD"])
def test_messages_are_posted(ask, method):
    response = ask(method, f"/{TOKEN}/api", origin=ORIGIN)
    assert response.status_code == 405
    assert "access-control-allow-origin" not in response.headers


def test_the_address_for_the_browser_leads_to_the_page_once(ask):
    path = ask.app.one_time_path()
    assert TOKEN not in path
    first = ask("GET", path)
    assert first.status_code == 303
    assert first.headers["location"] == f"/{TOKEN}/"
    refused(ask("GET", path), 403, "lacks the token")


# -- What for


@pytest.mark.parametrize(
    "name",
    [
        "../server.py",
        "..%2fserver.py",
        "%2e%2e/%2e%2e/errors.py",
        "....//server.py",
        "/etc/passwd",
        "render/../../errors.py",
        "render/..%5c..%5cerrors.py",
        "assets/index.html",
        "index.html%00.js",
        "server.py",
        "render/",
        "render",
        "~root",
        "C:/Windows/win.ini",
    ],
)
def test_no_path_of_a_request_reaches_the_file_system(ask, name):
    response = ask("GET", f"/{TOKEN}/{name}")
    # Some are made shorter by the client and lack the token then.
    assert response.status_code in (403, 404)
    assert "import" not in response.text


def test_only_files_of_the_page_are_served(ask):
    for name, (media_type, content) in page_files().items():
        response = ask("GET", f"/{TOKEN}/{name}")
        assert response.content == content
        assert response.headers["content-type"] == media_type
    page = ask("GET", f"/{TOKEN}/")
    assert page.content == page_files()["index.html"][1]
    refused(ask("POST", f"/{TOKEN}/studio.js", origin=ORIGIN), 405, "GET")


def test_every_answer_has_the_headers_of_a_page_without_network(ask):
    for response in (
        ask("GET", f"/{TOKEN}/studio.js"),
        sent(ask, {"method": "state"}),
        ask("GET", "/"),
        ask("GET", ask.app.one_time_path()),
    ):
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "frame-ancestors 'none'" in policy
        assert not re.search(r"unsafe|http|\*", policy)
        assert response.headers["referrer-policy"] == "no-referrer"
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["cache-control"] == "no-store"
        assert response.headers["x-frame-options"] == "DENY"
        assert "set-cookie" not in response.headers
        assert "server" not in response.headers


# -- How much


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"nothing",
        b"\xff\xfe",
        b'{"method": "state"',
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b"1" * 100_000,
    ],
)
def test_what_is_not_json_is_refused(ask, body):
    refused(sent(ask, body), 400, "not valid JSON")


def test_a_deep_message_is_an_error(ask):
    body = (
        b'{"method":"apply","args":{"action":{"a":' + b"[" * 900 + b"]" * 900 + b"}}}"
    )
    assert "error" in sent(ask, body).json()


def test_large_messages_are_refused_before_they_are_read(ask):
    assert sent(ask, b" " * (MOST_MESSAGE - 20) + b'{"method": "state"}').is_success
    refused(sent(ask, b" " * (MOST_MESSAGE + 1)), 413, "at most 1,000,000 bytes")
    for declared in ("9" * 30, "-1", "1e3", "many"):
        response = sent(ask, b"{}", content_length=declared)
        assert response.status_code in (400, 413)


def test_a_table_is_uploaded(ask, workspace):
    result = uploaded(ask).json()["result"]
    assert result["name"] == "play.csv"
    assert result["n_rows"] == 3
    assert [c["name"] for c in result["columns"]] == ["outlook", "wind", "play"]
    assert sent(ask, {"method": "state"}).json()["result"]["stage"] == "table"
    assert workspace.table.n_rows == 3


def test_names_of_uploads_are_texts_and_no_paths(ask, workspace):
    for name in ("../../etc/passwd", "%2Fetc%2Fcron.csv", "a%00b.csv", "x" * 5_000):
        result = uploaded(ask, name=name).json()["result"]
        assert "/" not in result["name"]
        assert "\0" not in result["name"]
        assert len(result["name"]) <= 200
    inside = workspace.table.path
    workspace.close()
    assert not Path(inside).exists()


def test_large_tables_are_refused_before_they_are_read(ask, workspace):
    refused(uploaded(ask, b"x" * 2_001), 413, "at most 2,000 bytes")
    refused(uploaded(ask, name=""), 400, "X-File-Name")
    assert workspace.table is None
    assert uploaded(ask).is_success


def test_an_upload_that_is_no_table_is_an_error_with_its_name(ask, workspace):
    answer = uploaded(ask, b"\x00\x01\x02" * 30, name="noise.csv").json()
    assert "noise.csv" in answer["error"]["message"]
    assert "tmp" not in answer["error"]["message"]
    assert workspace.table is None


def test_databases_are_not_uploaded(ask):
    content = b"SQLite format 3\x00" + bytes(500)
    answer = uploaded(ask, content, name="x.sqlite").json()
    assert "SQLite file, which cannot be uploaded" in answer["error"]["message"]


def test_a_mistake_of_ours_is_told_without_details(ask, workspace, monkeypatch):
    def broken():
        raise KeyError("/secret/path")

    monkeypatch.setattr(workspace, "state", broken)
    response = sent(ask, {"method": "state"})
    assert response.status_code == 200
    message = response.json()["error"]["message"]
    assert "mistake in branchwise (KeyError)" in message
    assert "secret" not in response.text
    assert "Traceback" not in response.text


def test_what_is_lacking_is_named_with_the_command(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(ValueError, match=r"pip install 'branchwise\[studio\]'"):
        server.check_installed()


def test_one_table_at_a_time_is_uploaded(ask, workspace):
    ask.app._uploading = True
    refused(uploaded(ask), 409, "Another table is being uploaded")
    ask.app._uploading = False
    assert uploaded(ask).is_success


def test_the_file_of_a_table_is_removed_when_another_comes(ask, workspace):
    uploaded(ask)
    first = Path(workspace.table.path)
    assert first.exists()
    # Other users of the computer cannot enter its folder.
    assert first.parents[1].stat().st_mode & 0o077 == 0
    uploaded(ask, name="other.csv")
    assert not first.exists()
    for _ in range(2):  # one that cannot be read is kept until the next one comes
        uploaded(ask, b"no table", name="wrong.csv")
    kept = [path for path in first.parents[1].rglob("*") if path.is_file()]
    assert len(kept) == 2
    uploaded(ask)
    kept = [path for path in first.parents[1].rglob("*") if path.is_file()]
    assert kept == [Path(workspace.table.path)]
