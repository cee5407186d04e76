"""The files of the studio's page: all are used, and the joined script is sound."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import branchwise
from branchwise.studio.page import COMPARED, SCRIPTS, STYLES, page_files
from branchwise.text.as_html import asset

ROOT = Path(branchwise.__file__).parent
ASSETS = ROOT / "studio" / "assets"


def test_every_asset_is_used_and_can_be_read():
    used = {
        name for name in (*SCRIPTS, *COMPARED, *STYLES) if name.startswith("studio/")
    }
    others = {"index.html", "start.js", "transport.js"}
    others |= {"mount.js", "skeleton.html", "compared.html"}
    others |= {"widget.js", "frame.html", "frame.js"}  # of notebooks
    found = {path.name for path in ASSETS.iterdir()}
    assert found == {name.removeprefix("studio/assets/") for name in used} | others
    for path in ASSETS.iterdir():
        assert path.read_text(encoding="utf-8").count("\n") < 400, path.name


def test_the_page_is_made_of_these_files_only():
    files = page_files()
    assert sorted(files) == [
        "index.html",
        "start.js",
        "studio.css",
        "studio.js",
        "transport.js",
    ]
    page = files["index.html"][1].decode("utf-8")
    named = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert set(named) - {"data:,"} <= set(files)  # relative: no slash, no address


def test_nothing_in_the_page_is_inline_or_from_elsewhere():
    for name in ("index.html", "skeleton.html", "compared.html"):
        text = (ASSETS / name).read_text(encoding="utf-8")
        assert not re.search(r"\sstyle=|\son\w+=|<style|<script(?![^>]*src=)", text)
    for _, content in page_files().values():
        text = content.decode("utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text
        assert "https://" not in text


@pytest.mark.parametrize(("scripts", "least"), [(SCRIPTS, 200), (COMPARED, 100)])
def test_no_name_of_joined_scripts_is_declared_twice(scripts, least):
    script = "\n".join(map(asset, scripts))
    names = re.findall(r"^(?:async )?(?:function|const|let|class) (\w+)", script, re.M)
    assert len(names) > least
    assert [name for name in set(names) if names.count(name) > 1] == []


def test_texts_of_the_table_are_never_read_as_html():
    for path in set(ASSETS.glob("*.js")) - {ASSETS / "mount.js"}:
        text = path.read_text(encoding="utf-8")
        assert not re.search(
            r"innerHTML|insertAdjacentHTML|outerHTML|document\.write", text
        )


@pytest.mark.skipif(shutil.which("node") is None, reason="no Node.js here")
def test_the_scripts_are_sound(tmp_path):
    for name, (kind, content) in page_files().items():
        if not kind.startswith("text/javascript"):
            continue
        script = tmp_path / f"{name}.mjs"
        script.write_bytes(content)
        checked = subprocess.run(
            ["node", "--check", str(script)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert checked.returncode == 0, checked.stderr
