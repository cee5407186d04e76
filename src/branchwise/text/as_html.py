"""Documents and pages as HTML, by jinja2 templates that escape what is put in.

Templates are in the folders ``templates`` beside the code that fills them in. Whatever
is put in is escaped, and non-printing characters are written as escapes, so that
nothing in a name is taken for HTML and nothing in it is hidden.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from branchwise.errors import counted, plain
from branchwise.text.blocks import Block, Formula
from branchwise.text.conditions import phrase
from branchwise.text.words import amount, listed, mean, number, rounded, word

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

#: Between a number and its sign.
_BEFORE_SIGN = re.compile(r"(?<=\d) (?=[%€$£¥])")
#: jinja2 escapes what could end a script in JSON, but for these.
_IN_SCRIPTS = str.maketrans({c: f"\\u{ord(c):04x}" for c in "\u2028\u2029"})


def as_html(
    blocks: Iterable[Block], heading: int | None = None, reveal: bool = False
) -> Markup:
    """Write blocks as a part of a page; with ``reveal`` folds are open.

    ``heading`` is the level of headings of level 1; without it they are paragraphs.
    """
    blocks_html: Any = _environment().get_template("text/templates/blocks.html").module
    written: Markup = blocks_html.write(list(blocks), heading, reveal)
    return written.strip()


def page(template: str, **values: Any) -> str:
    """Fill in a template, named by its path within the package."""
    return _environment().get_template(template).render(**values)


def macros(template: str, **values: Any) -> Any:
    """Return the macros of a template of plain text; they write values as they are."""
    return _plain_text().get_template(template).make_module(values)


@cache
def _plain_text() -> Environment:
    return _environment().overlay(autoescape=False, finalize=None)


def markup(html: str) -> Markup:
    """Mark what is HTML already, such as a style sheet of ours."""
    from markupsafe import Markup  # noqa: PLC0415

    return Markup(html)  # noqa: S704


@cache
def asset(path: str) -> Markup:
    """Return a style sheet or a script of ours, by its path within the package."""
    return markup(_text_of(path))


def _text_of(path: str) -> str:
    return (files("branchwise") / path).read_text(encoding="utf-8")


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
    digests = (hashlib.sha256(text.encode("utf-8")).digest() for text in texts)
    return " ".join(f"'sha256-{base64.b64encode(d).decode('ascii')}'" for d in digests)


@cache
def _environment() -> Environment:
    from jinja2 import (  # noqa: PLC0415
        Environment,
        FunctionLoader,
        StrictUndefined,
        pass_eval_context,
    )

    environment = Environment(
        # Not PackageLoader, which does not find the files of an editable installation.
        loader=FunctionLoader(_text_of),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        # Programs are pages, too, and no HTML.
        finalize=pass_eval_context(lambda to, text: _printable(to.autoescape, text)),
    )
    environment.filters["formula"] = _formula
    environment.filters["verbatim"] = _verbatim
    environment.filters["kind"] = lambda block: type(block).__name__
    environment.filters["commas"] = "{:,}".format
    for words in (amount, counted, listed, mean, number, phrase, rounded, word):
        environment.filters[words.__name__] = words
    environment.policies["json.dumps_function"] = _json
    environment.policies["json.dumps_kwargs"] = {}
    return environment


def _printable(is_html: bool, value: Any) -> Any:
    """Write non-printing characters as escapes; what is HTML already stays.

    No line of a page ends between a number and its sign: 72.3 %.
    """
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    if not is_html or _BEFORE_SIGN.search(value) is None:
        return _escaped(value)
    from markupsafe import Markup  # noqa: PLC0415

    return Markup(_BEFORE_SIGN.sub("&nbsp;", _verbatim(value)))  # noqa: S704 (escaped)


def _escaped(text: str) -> str:
    return "\n".join(map(plain, text.split("\n")))


def _verbatim(text: str) -> Markup:
    """Write commands and code, which are copied, with the spaces that they have."""
    from markupsafe import escape  # noqa: PLC0415

    return escape(_escaped(text))


def _json(document: Any) -> str:
    written = json.dumps(
        document, ensure_ascii=False, separators=(",", ":"), allow_nan=False
    )
    return written.translate(_IN_SCRIPTS)


def _formula(formula: Formula) -> Markup:
    from branchwise.text.mathml import in_mathml  # noqa: PLC0415

    return in_mathml(formula)
