"""The page of the studio: files that the server sends, and parts for other hosts.

The scripts are joined into one module, as those of the viewer are, whose drawing they
use. It exports one function, ``mount``, which shows the studio in an element; its
second argument is a function that sends a message, by which hosts differ.
"""

from __future__ import annotations

import json
from functools import cache

from branchwise.render.picture import variables
from branchwise.text.as_html import asset

_ASSETS = "studio/assets"
_VIEWER = "render/assets"
#: The scripts that draw a tree, joined in this order.
_DRAWING = (
    f"{_VIEWER}/dom.js",
    f"{_VIEWER}/walk.js",
    f"{_ASSETS}/tree.js",
    f"{_VIEWER}/numbers.js",
    f"{_VIEWER}/predictions.js",
    f"{_VIEWER}/measure.js",
    f"{_VIEWER}/layout.js",
    f"{_VIEWER}/camera.js",
    f"{_VIEWER}/draw.js",
    f"{_VIEWER}/selection.js",
    f"{_VIEWER}/arrows.js",
)
#: The scripts of the page.
SCRIPTS = (
    *_DRAWING,
    f"{_VIEWER}/search.js",
    f"{_VIEWER}/legend.js",
    f"{_ASSETS}/messages.js",
    f"{_ASSETS}/edits.js",
    f"{_ASSETS}/candidates.js",
    f"{_ASSETS}/preview.js",
    f"{_ASSETS}/threshold.js",
    f"{_ASSETS}/positive_class.js",
    f"{_ASSETS}/groups.js",
    f"{_ASSETS}/recipe.js",
    f"{_ASSETS}/node_actions.js",
    f"{_ASSETS}/node_tab.js",
    f"{_ASSETS}/score_tab.js",
    f"{_ASSETS}/nodes_tab.js",
    f"{_ASSETS}/case_tab.js",
    f"{_ASSETS}/export_tab.js",
    f"{_ASSETS}/side_by_side.js",
    f"{_ASSETS}/session_tab.js",
    f"{_ASSETS}/teaching.js",
    f"{_ASSETS}/tabs.js",
    f"{_ASSETS}/keyboard.js",
    f"{_ASSETS}/reading.js",
    f"{_ASSETS}/setup.js",
    f"{_ASSETS}/workbench.js",
)
#: The scripts of a tree that is compared with another one.
COMPARED = (*_DRAWING, f"{_ASSETS}/compared_tree.js")
#: The style sheets, joined in this order.
STYLES = (
    f"{_VIEWER}/viewer.css",
    f"{_VIEWER}/panel.css",
    f"{_VIEWER}/media.css",
    f"{_ASSETS}/studio.css",
)
_SCRIPT = "text/javascript; charset=utf-8"


def style_and_script() -> tuple[str, str]:
    """Return the style sheet of the page, and the module that exports ``mount``."""
    style = "\n".join([*variables(), *map(asset, STYLES)])
    pieces = {
        '"{{ skeleton }}"': json.dumps(str(asset(f"{_ASSETS}/skeleton.html"))),
        '"{{ compared }}"': json.dumps(str(asset(f"{_ASSETS}/compared.html"))),
        '"{{ scripts }}";': "\n".join(map(asset, SCRIPTS)),
        '"{{ compared scripts }}";': "\n".join(map(asset, COMPARED)),
    }
    script = str(asset(f"{_ASSETS}/mount.js"))
    for mark, piece in pieces.items():
        script = script.replace(mark, piece)
    return style, script


@cache
def page_files() -> dict[str, tuple[str, bytes]]:
    """Return the files of the page by name: content type and content."""
    style, script = style_and_script()
    texts = {
        "index.html": ("text/html; charset=utf-8", asset(f"{_ASSETS}/index.html")),
        "start.js": (_SCRIPT, asset(f"{_ASSETS}/start.js")),
        "transport.js": (_SCRIPT, asset(f"{_ASSETS}/transport.js")),
        "studio.js": (_SCRIPT, script),
        "studio.css": ("text/css; charset=utf-8", style),
    }
    return {name: (kind, text.encode("utf-8")) for name, (kind, text) in texts.items()}
