"""Whatever text a model file holds stays text in every view and every export.

Every hostile text is put into every text field of a model file, the model is shown and
exported in every way, and each output is read as its medium reads it: nothing of the
text may be code, markup or a control character there. All texts hold ``zqx``, which
nothing else has.
"""

from __future__ import annotations

import ast
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from branchwise import ExportError, ModelFileError, ParameterError, export
from branchwise import model_file as persist
from branchwise.export import scripts
from branchwise.export import sql as sql_runners
from branchwise.export.plan import make_plan
from branchwise.model import Model
from branchwise.plot import plot_tree
from branchwise.report import make_report
from selection import first_fast

HOSTILE = (
    "zqx\nCOPY (SELECT 'zqx') TO 'zqx.csv'; --",
    "zqx\r\nzqx(1)\u2028zqx(2)\x85zqx(3)\x0bzqx(4)\x0czqx(5)",
    "*/ zqx(); /* ?>",
    "--> zqx(); <!-- ]]>",
    "'; zqx(); --",
    '"; zqx(); "',
    "\\'; zqx(); --",
    '\\"); zqx(); ("',
    '"""\nzqx()\n"""',
    "`${zqx()}`",
    "zqx\\",
    "??/\nzqx();",
    "</script><zqx onload=zqx()></textarea></style></title>",
    '" onload="zqx()" zqx="',
    "' onload='zqx()' zqx='",
    "&lt;zqx&gt; &#60;zqx&#62;",
    "=zqx()",
    "-zqx()",
    "@zqx()",
    "[zqx](javascript:zqx()) ![zqx](http://zqx) <http://zqx>",
    "\n# zqx\n- zqx\n| zqx | zqx |\n",
    "\\zqx{} $\\zqx$ % zqx \\input{zqx}",
    "]; zqx -> zqx; }",
    '"]; click zqx "javascript:zqx()"',
    "\x1b[31mzqx\x1b[0m\x07\x08\x9bzqx",
    "\u202ezqx\u2066\u200bzqx\ufeff",
    "zqx\ud800",
    "zqx\x00zqx",
    "%szqx {0} {zqx} %n",
    "#{zqx()} <%= zqx() %> {{zqx()}}",
)


def _combined() -> tuple[str, ...]:
    """Return a few texts that hold all of these, for the quick tests.

    What XML and others may refuse is apart; spreadsheets look at how a text begins, and
    a backslash counts at its end.
    """
    lone = ("zqx\ud800", "zqx\x00zqx")
    rare = [t for t in HOSTILE if t not in lone and re.search(r"[\x07-\x1f\x85]", t)]
    usual = [t for t in HOSTILE if t not in lone and t not in rare]
    heads, tail = ["=zqx()", "-zqx()", "@zqx()"], "zqx\\"
    rest = [t for t in usual if t not in (*heads, tail)]
    mixed = [" ".join([h, *rest[at::3], tail]) for at, h in enumerate(heads)]
    return (*mixed, *(" ".join(rare[at::2]) for at in range(2)), *lone)


FEW = _combined()
#: The few texts always, each one by itself where there is time.
AMOUNTS = pytest.mark.parametrize(
    "hostile",
    [
        pytest.param(FEW, id="combined"),
        pytest.param(HOSTILE, id="each", marks=pytest.mark.slow),
    ],
)
#: Outputs that may refuse a text, with their own error, because they cannot hold it.
REFUSALS = (ExportError, ParameterError)


def model_file(text: str, field: str) -> bytes:
    """Return a model file with a text in one field of a kind."""
    put = {name: text if name == field else name for name in FIELDS}
    return json.dumps(
        {
            "format": "branchwise-model",
            "version": 1,
            "recipe": {
                "algorithm": put["algorithm"] if field == "algorithm" else "CART",
                "criterion": {"function": put["criterion"]},
                "max_depth": None,
                "min_samples_split": 2,
                "min_samples_leaf": 1,
                "min_gain": 0,
                "missing": "largest",
                "unseen": "largest",
                "branching": "two-way",
            },
            "schema": {
                "target": put["target"],
                "named": True,
                "classes": ["no", put["class"]],
                "columns": [
                    column(put["number"], "numeric", []),
                    column(put["column"], "categorical", ["a", put["value"], "z"]),
                ],
            },
            "tree": {
                "column": [1, 0, -1, -1, -1],
                "cut": [None, 0.5, None, None, None],
                "n_children": [2, 2, 0, 0, 0],
                "missing_to": [0, 0, -1, -1, -1],
                "unseen_to": [0, 0, -1, -1, -1],
                "n_codes": [0, 2, 1, 1, 1],
                "codes": [0, 1, 2, 0, 1],
                "weights": [[4, 6], [4, 2], [0, 4], [3, 1], [1, 1]],
                "cases": [10, 6, 4, 4, 2],
            },
        }
    ).encode()


FIELDS = ("algorithm", "criterion", "target", "class", "number", "column", "value")


def column(name: str, kind: str, categories: list[str]) -> dict[str, Any]:
    return {
        "name": name,
        "kind": kind,
        "categories": categories,
        "has_missing": False,
    }


@cache
def opened(text: str, field: str) -> Model:
    return Model(*persist.from_bytes(model_file(text, field)))


# -- How each medium is read


def only_printed(text: str) -> None:
    """A terminal or a log: lines of printable characters."""
    bad = {c for c in text if not (c == "\n" or c.isprintable())}
    assert not bad, bad


def no_code(pattern: str) -> Callable[[str], None]:
    """Source text: nothing of a hostile text outside of literals and comments."""
    literal = re.compile(pattern, re.DOTALL)

    def check(text: str) -> None:
        only_printed(text.replace("\ufeff", ""))
        code = literal.sub(" ", text)
        found = re.search(r".*(zqx ?\(|zqx\.csv|javascript:|onload=).*", code)
        assert not found, found

    return check


_C = r"//[^\n]*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'"
_JS = _C + r"|`[^`]*`"
_DOUBLE = r'"(?:[^"\\]|\\.)*"'


def no_markup(text: str) -> None:
    """HTML: no element, attribute, comment or declaration of a hostile text."""
    reader = _Markup()
    reader.feed(text)
    reader.close()
    assert not reader.found, reader.found


class _Markup(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.found += [w for w in (tag, *(n for n, _ in attrs)) if "zqx" in w]
        self.found += [n for n, _ in attrs if n.startswith("on")]
        self.found += [v for n, v in attrs if n in ("href", "src") and "zqx" in v]

    def handle_comment(self, data):
        self.found += ["comment"] * ("zqx" in data)

    def handle_decl(self, decl):
        self.found += ["declaration"] * ("zqx" in decl)


def no_elements(text: str | bytes) -> None:
    """XML: whole, and without an element or an attribute of a hostile text."""
    for element in ET.fromstring(text).iter():
        names = [element.tag, *element.attrib]
        assert not [n for n in names if "zqx" in n or n.startswith("on")], names


def no_links(text: str) -> None:
    """Markdown: lines that print, and only the elements that the page has anyway."""
    markdown = pytest.importorskip("markdown_it").MarkdownIt(
        "gfm-like2", {"html": True, "linkify": False}
    )
    only_printed(text)
    shown = markdown.render(text)
    assert not re.search(r"<(a|img|zqx|script)\b", shown), shown
    no_markup(shown)


def no_macros(text: str) -> None:
    """LaTeX: no control sequence of a hostile text, and no comment."""
    only_printed(text)
    assert r"\zqx" not in text
    assert r"\input{zqx" not in text
    for line in text.splitlines():
        assert not re.search(r"(?<!\\)(?:\\\\)*%.*zqx", line), line


def is_python(content: bytes) -> None:
    text = content.decode()
    only_printed(text)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            assert "zqx" not in ast.dump(node.func)


def is_json(content: bytes | str) -> None:
    text = content if isinstance(content, str) else content.decode()
    json.loads(text)
    only_printed(text)


def is_workbook(content: bytes) -> None:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for name in archive.namelist():
            part = archive.read(name)
            no_elements(part)
            for element in ET.fromstring(part).iter():
                if element.tag.endswith("}f"):
                    code = re.sub(r'"[^"]*"', "", element.text or "")
                    assert "zqx" not in code, code


def is_graph(content: bytes) -> None:
    onnx = pytest.importorskip("onnx")
    model = onnx.load_from_string(content)
    only_printed(model.graph.doc_string)
    assert {n.domain for n in model.graph.node} <= {"", "ai.onnx.ml"}
    assert not [n.op_type for n in model.graph.node if "zqx" in n.op_type]


_SQL = r"--[^\n]*|\"(?:[^\"]|\"\")*\"|'(?:[^']|'')*'"
_SQL_OF = {
    "ansi": _SQL,
    "sqlite": _SQL,
    "duckdb": _SQL,
    "postgresql": r"E'(?:[^'\\]|''|\\.)*'|" + _SQL,
    "spark": r"--[^\n]*|`(?:[^`]|``)*`|'[^'\\]*'",
}


def is_sql(dialect: str) -> Callable[[bytes], None]:
    literal = re.compile(_SQL_OF[dialect], re.DOTALL)

    def check(content: bytes) -> None:
        code = literal.sub(" ", content.decode())
        assert "zqx" not in code, code
        assert ";" not in code, code

    return check


# -- The outputs


X = {"number": [0.0, 1.0, 0.0, 2.0], "column": ["a", "a", "z", "z"]}


def rows(model: Model) -> dict[str, list[Any]]:
    return dict(zip((c.name for c in model.schema.columns), X.values(), strict=True))


def case(model: Model) -> dict[str, Any]:
    return {name: cells[0] for name, cells in rows(model).items()}


def explained(model: Model) -> Iterator[Any]:
    yield model.explain(case(model))
    yield model.what_if(case(model), model.schema.classes[1])
    yield model.diff(opened("plain", "class"))


def texts(model: Model) -> Iterator[str]:
    yield from (str(model), repr(model), str(model.schema.describe()))
    for style in ("quinlan", "box"):
        yield model.to_text(empty_branches=True, missing=True, style=style)
    for simplify in (False, True):
        yield model.rules(simplify).to_text()
        yield from (f(r) for r in model.rules(simplify) for f in (str, repr))
        yield from (rule.sentence() for rule in model.rules(simplify))
    for one in explained(model):
        yield from (one.to_text(), repr(one))


def markdowns(model: Model) -> Iterator[str]:
    yield model.to_text(style="markdown")
    yield model.rules().to_markdown()
    yield from (one.to_markdown() for one in explained(model))


def pages(model: Model) -> Iterator[str]:
    page = model.to_html()
    assert page is not None
    yield from (page, model._repr_html_())
    yield from (one.to_html() for one in explained(model))


def training(model: Model) -> tuple[dict[str, list[Any]], list[Any]]:
    """Return the rows that the counts of the tree come from."""
    numbers, values = [0.0] * 8 + [1.0] * 2, ["z"] * 4 + ["a"] * 6
    names = [column.name for column in model.schema.columns]
    y = [model.schema.classes[code] for code in (1, 1, 1, 1, 0, 0, 0, 1, 0, 1)]
    return dict(zip(names, (numbers, values), strict=True)), y


def steps(model: Model) -> Any:
    """Work out the nodes of a tree."""
    return model.steps(*training(model), node="all")


VIEWS: dict[str, tuple[Callable[[Model], Iterator[str]], Callable[[str], None]]] = {
    "text": (texts, only_printed),
    "markdown": (markdowns, no_links),
    "html": (pages, no_markup),
    "svg": (lambda m: iter([m.to_svg()]), no_elements),
    "dot": (lambda m: iter([m.to_dot()]), no_code(_DOUBLE)),
    "mermaid": (lambda m: iter([m.to_mermaid()]), no_code(r'"[^"]*"')),
    "view": (lambda m: iter([json.dumps(m.view())]), is_json),
    "rules": (lambda m: iter([m.rules().to_json()]), is_json),
}
EXPORTS: dict[str, tuple[dict[str, str], Callable[[bytes], None]]] = {
    "c": ({}, lambda content: no_code(_C)(content.decode())),
    "excel": ({"lines": "9"}, is_workbook),
    "javascript": ({}, lambda content: no_code(_JS)(content.decode())),
    "json": ({}, is_json),
    "onnx": ({}, is_graph),
    "pmml": ({}, no_elements),
    "python": ({}, is_python),
    **{f"sql {d}": ({"dialect": d}, is_sql(d)) for d in _SQL_OF},
}


@AMOUNTS
@pytest.mark.parametrize("field", FIELDS[1:])
@pytest.mark.parametrize("name", VIEWS)
def test_a_text_of_a_file_stays_text_in_views(name, field, hostile):
    outputs, check = VIEWS[name]
    for text in hostile:
        for output in outputs(opened(text, field)):
            check(output)


@AMOUNTS
@pytest.mark.parametrize("field", FIELDS[1:])
@pytest.mark.parametrize("name", EXPORTS)
def test_a_text_of_a_file_stays_text_in_exports(name, field, hostile):
    chosen, check = EXPORTS[name]
    if name == "onnx":
        pytest.importorskip("onnx")
    if name == "sql postgresql":  # whose names have 63 bytes at most
        hostile = HOSTILE
    carried = 0
    for text in hostile:
        try:
            content = export.write(opened(text, field), name.split()[0], **chosen)
        except REFUSALS:
            continue
        check(content)
        carried += 1
    assert carried >= len(hostile) / 2 - 1


@AMOUNTS
def test_the_steps_of_a_criterion_without_code_are_refused_or_safe(hostile):
    for text in hostile:
        with pytest.raises(ParameterError) as caught:
            steps(opened(text, "criterion"))
        only_printed(str(caught.value))


@AMOUNTS
@pytest.mark.parametrize("field", FIELDS[2:])
def test_a_text_of_a_file_stays_text_in_a_worked_solution(field, hostile):
    for text in hostile:
        document = json.loads(model_file(text, field))
        document["recipe"]["criterion"] = "gini"
        found = steps(Model(*persist.from_bytes(json.dumps(document).encode())))
        only_printed(found.to_text())
        no_links(found.to_markdown())
        no_macros(found.to_latex())
        no_markup(found.to_html())


@AMOUNTS
@pytest.mark.parametrize("field", FIELDS[2:])
def test_a_text_of_a_file_stays_text_in_generalised_rules(field, hostile):
    for text in hostile:
        model = opened(text, field)
        rules = model.generalised_rules(*training(model))
        table = rules.table(*training(model))
        for one in (rules, table):
            only_printed(str(one))
            only_printed(repr(one))
            no_links(one.to_markdown())
        only_printed(rules.to_text())
        is_json(rules.to_json())
        is_json(json.dumps(table.to_dict()))


@AMOUNTS
@pytest.mark.parametrize("field", FIELDS[2:])
def test_a_text_of_a_file_stays_text_in_drawings(field, hostile):
    figure = pytest.importorskip("matplotlib.figure")
    for text in hostile:
        drawing = figure.Figure()
        plot_tree(opened(text, field), ax=drawing.add_subplot())
        written = io.StringIO()
        drawing.savefig(written, format="svg")
        no_elements(written.getvalue())


@AMOUNTS
@pytest.mark.parametrize("field", first_fast(["every", *FIELDS[2:]]))
def test_a_text_of_a_table_stays_text_in_a_report(field, hostile):
    for text in hostile:
        X, y = reported(text if "\ud800" not in text else "zqx", field)
        target = text if field in ("target", "every") else "target"
        found = make_report(X, y, hold_out=0.5, title=text, target_name=target)
        page = found.to_html()
        no_markup(page)
        only_printed(re.sub(r"[\t\r\ufeff]", "", page))
        only_printed(repr(found))
        is_json(found.to_json())


def reported(text: str, field: str) -> tuple[dict[str, list[Any]], list[str]]:
    """Return a table with a text in one field of a kind, or in every one."""
    put = {name: text if field in (name, "every") else name for name in FIELDS}
    if field == "every":
        put["column"] = f"{text} {text}"  # the two columns need two names
    X = {
        put["number"]: [float(at % 5) for at in range(40)],
        put["column"]: [(put["value"], "a", "z")[at % 3] for at in range(40)],
    }
    return X, [(put["class"], "no")[at % 5 < 2] for at in range(40)]


@pytest.mark.parametrize("text", FEW)
def test_an_algorithm_is_one_of_those_there_are(text):
    with pytest.raises(ModelFileError, match="'algorithm' of 'recipe' must be one of"):
        opened(text, "algorithm")


@pytest.mark.parametrize("text", FEW)
def test_messages_about_a_hostile_file_print(text):
    for field in FIELDS[2:]:
        document = json.loads(model_file(text, field))
        document["schema"]["columns"] *= 2
        document["schema"]["classes"] *= 2
        with pytest.raises(ModelFileError) as caught:
            persist.from_bytes(json.dumps(document).encode())
        only_printed(str(caught.value))


# -- Runners do nothing but answer


def runnable(target: str, **options: str) -> tuple[Any, bytes, Any]:
    model = opened("plain", "target")
    chosen = export.target_named(target)
    plan = make_plan(model.schema, model.tree, model.recipe)
    return plan, export.write(model, target, **options), chosen


STATEMENTS = {
    "a second statement": "{}\n; COPY (SELECT 1) TO '{place}'",
    "another statement": "CREATE TABLE zqx (a INT)",
}
READS = {
    "sqlite": [
        "ATTACH '{place}' AS zqx",
        "SELECT load_extension('{place}')",
        "PRAGMA user_version = 3",
    ],
    "duckdb": [
        "COPY (SELECT 1) TO '{place}'",
        "SELECT * FROM read_csv('{there}')",
        "SELECT * FROM '{there}'",
        "ATTACH '{place}' AS zqx",
        "SET enable_external_access = true",
        "INSTALL httpfs",
        "LOAD httpfs",
    ],
    "postgresql": [
        "COPY (SELECT 1) TO PROGRAM 'cat > {place}'",
        "DROP TABLE kept",
        "CREATE TABLE zqx (a int)",
    ],
}


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb", "postgresql"])
def test_a_database_runs_one_select_and_nothing_else(
    dialect, tmp_path, request, monkeypatch
):
    place, there = tmp_path / "written.csv", tmp_path / "there.csv"
    there.write_text("a,b\n1,2\n")
    if dialect == "postgresql":
        address = request.getfixturevalue("postgresql")
        monkeypatch.setenv(sql_runners.ADDRESS, address)
        place = tmp_path.parent / "written by a server"
    elif dialect == "duckdb":
        pytest.importorskip("duckdb")
    plan, content, target = runnable("sql", dialect=dialect)
    (runner,) = target.runners({"dialect": dialect, "table": "rows", "form": "query"})
    assert len(runner.run(content, plan, [(0.0, "a")])) == 1
    query = content.decode()
    for statement in [*STATEMENTS.values(), *READS[dialect]]:
        text = statement.replace("{}", query)
        text = text.replace("{place}", str(place)).replace("{there}", str(there))
        with pytest.raises(ExportError, match="The export does not run"):
            runner.run(text.encode(), plan, [(0.0, "a")])
        assert not place.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["there.csv"]


@pytest.mark.parametrize(
    "line",
    [
        "open('zqx', 'w')",
        "__import__('os').system('true')",
        "__import__('socket').socket()",
        "__import__('subprocess').run(['true'])",
    ],
)
def test_a_python_export_reaches_nothing(line):
    plan, content, _ = runnable("python")
    with pytest.raises(ExportError, match="an export must not use"):
        scripts.PYTHON.runners({})[0].run(
            content + f"\n{line}\n".encode(), plan, [(0.0, "a")]
        )


@pytest.mark.parametrize(
    "line",
    [
        "require('fs').writeFileSync('zqx', 'x')",
        "process.exit(0)",
        "fetch('http://127.0.0.1')",
        "module.constructor.constructor('return process')()",
        "this.constructor.constructor('return process')()",
    ],
)
def test_a_javascript_export_reaches_nothing(line):
    (runner,) = scripts.JAVASCRIPT.runners({})
    if runner.absent() is not None:
        pytest.skip(runner.absent())
    plan, content, _ = runnable("javascript")
    with pytest.raises(ExportError, match=r"is not defined|Code generation"):
        runner.run(content + f"\n{line}\n".encode(), plan, [(0.0, "a")])


@pytest.mark.parametrize("dialect", _SQL_OF)
def test_the_head_of_a_query_is_one_comment(dialect):
    """Even if a plan said something about itself that no file can say."""
    plan, _, target = runnable("sql", dialect=dialect)
    for text in HOSTILE:
        options = {"dialect": dialect, "table": "rows", "form": "query"}
        is_sql(dialect)(target.write(replace(plan, about=text), options))
