"""What a browser may do with a page of ours: run our scripts, and no more."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence


def policy(styles: Sequence[str], scripts: Sequence[str]) -> str:
    """Return a content security policy that knows styles and scripts by their hashes.

    The network is closed. A page within a page must be allowed by both of them.
    """
    return (
        f"default-src 'none'; script-src {_hashes(scripts)}; "
        f"style-src {_hashes(styles)}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )


def _hashes(texts: Sequence[str]) -> str:
    return " ".join(
        f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
        for digest in (hashlib.sha256(text.encode("utf-8")).digest() for text in texts)
    )
