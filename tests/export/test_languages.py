"""Exports to programming languages: their form, their limits, and what they refuse."""

from __future__ import annotations

import ast
import json
import random
import re
import shutil
import subprocess
import sys

import pytest

from branchwise import (
    CARTClassifier,
    ExportError,
    ID3Classifier,
    ParameterError,
    datasets,
    export,
)
from branchwise import fit_tree as fit
from branchwise.export import (
    code_writer as spelling,
)
from branchwise.export import (
    json_rules,
    verification,
)
from branchwise.export.base import same
from branchwise.export.c import compile_and_run, compiler
from branchwise.export.code_writer import comment, identifiers
from branchwise.export.plan import Field, Node, Plan, PlanSplit
from branchwise.export.statements import pieces_of
from branchwise.export.verification import probe_rows
from branchwise.tree.splits import EVERY_BRANCH, STOP
from export_plans import follow, plan_of
from mixed_ensembles import random_boosting, random_ensemble
from mixed_trees import HOSTILE, random_models

LANGUAGES = ("c", "javascript", "python")
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror")
needs_c = pytest.mark.skipif(compiler() is None, reason="no C compiler")
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="no Node.js")


@pytest.fixture(scope="module")
def weather():
    table = datasets.load("weather")
    return fit(table.X, table.y)


def run(target, plan, rows, **options):
    """Write a plan in a language, run it, and return its answers."""
    chosen = verification.TARGETS[target]
    all_options = chosen.options(options)
    (runner,) = chosen.runners(all_options)
    if runner.absent() is not None:
        pytest.skip(runner.absent())
    return runner.run(chosen.write(plan, all_options), plan, rows)


def assert_right(target, plan, rows, **options):
    answers = run(target, plan, rows, **options)
    for row, answer in zip(rows, answers, strict=True):
        assert same(follow(plan, row), answer, plan), row


def module_of(model):
    """Import a Python export without a file."""
    names = {}
    exec(export.write(model, "python"), names)
    return names


# Large trees


def plan_of_shape(n_questions, deep, divides):
    """Make a tree of questions about a number, or of all kinds and wide, too."""
    chance = random.Random(n_questions)
    values = tuple(f"value {i}" for i in range(40))
    fields = (
        Field("x", 0, "number", True, ()),
        Field("word", 1, "text", False, values),
        Field("flag", 2, "boolean", False, (False, True)),
    )
    nodes = []
    n_nodes, asked = 1, 0
    while len(nodes) < n_nodes:
        place = len(nodes)
        question = None
        if asked < n_questions and not (deep and place and place % 2 == 0):
            asked += 1
            # A deep tree divides rarely: a case would arrive at every node.
            every = divides and (not deep or place % 2001 == 1)
            to = EVERY_BRANCH if every else STOP
            question = question_of(chance, asked, deep, to)
        p = chance.random()
        nodes.append(Node(question, n_nodes, int(p < 0.5), (p, 1 - p), None))
        n_nodes += len(question.branches) if question else 0
    classes = ("a", "b")
    return Plan("t", "A large tree", fields, classes, tuple(nodes), False, False, None)


def question_of(chance, asked, deep, to):
    two = ((0,), (1,))
    if deep:
        return PlanSplit(0, 1000.0 - asked / 1000, two, to, STOP, (0.3, 0.7))
    kind = chance.random()
    if kind < 0.6:
        return PlanSplit(0, chance.gauss(0, 1), two, to, STOP, (0.3, 0.7))
    if kind < 0.9:
        return PlanSplit(2, None, two, to, STOP, (0.25, 0.75))
    twenty = tuple((i, i + 20) for i in range(20))
    return PlanSplit(1, None, twenty, to, to, (1 / 20,) * 20)


def rows_for(n):
    chance = random.Random(n)
    return [
        (
            chance.choice([None, chance.gauss(0, 1), 930.0, -2000.0]),
            chance.choice([None, "value 3", "value 33", "?"]),
            chance.choice([None, True, False]),
        )
        for _ in range(n)
    ]


@pytest.mark.parametrize("target", LANGUAGES)
@pytest.mark.parametrize("deep", [True, False])
def test_trees_deeper_than_a_parser_allows(target, deep):
    plan = plan_of_shape(1200 if deep else 100, deep, divides=not deep)
    assert len(list(pieces_of(plan))) > 3
    assert_right(target, plan, rows_for(50))


@pytest.mark.slow
@pytest.mark.parametrize("target", LANGUAGES)
@pytest.mark.parametrize("divides", [True, False])
@pytest.mark.parametrize("deep", [True, False])
def test_trees_of_100_000_nodes_and_levels(target, deep, divides):
    plan = plan_of_shape(100_000 if deep else 26_000, deep, divides)
    assert len(plan.nodes) > 90_000
    assert_right(target, plan, rows_for(20))


@pytest.mark.parametrize("target", LANGUAGES)
@pytest.mark.parametrize("divides", [True, False])
def test_a_question_with_many_values_and_branches(target, divides):
    values = tuple(f"{i:04} \"'\\" for i in range(2000))
    fields = (
        Field("many", 0, "text", False, values),
        Field("n", 1, "number", True, ()),
    )
    to = EVERY_BRANCH if divides else STOP
    wide = tuple((i,) for i in range(0, 1900, 2))
    halves = (tuple(range(1000)), tuple(range(1000, 1990)))
    shares = (1 / len(wide),) * len(wide)
    nodes = [
        Node(
            PlanSplit(1, 0.1, ((0,), (1,)), to, STOP, (0.5, 0.5)),
            1,
            0,
            (1.0, 0.0),
            None,
        ),
        Node(PlanSplit(0, None, wide, STOP, to, shares), 3, 1, (0.4, 0.6), None),
        Node(PlanSplit(0, None, halves, 1, STOP, (0.5, 0.5)), 953, 0, (0.7, 0.3), None),
    ]
    nodes += [
        Node(None, 0, place % 2, (place / 1000, 1 - place / 1000), None)
        for place in range(3, 955)
    ]
    plan = Plan("t", "wide", fields, (False, True), tuple(nodes), False, False, None)
    assert_right(target, plan, probe_rows(plan, 1000))


# What tables contain never becomes code


@pytest.mark.parametrize("target", LANGUAGES)
def test_nothing_in_a_table_runs(target, tmp_path):
    marker = tmp_path / "marker"
    path = str(marker)
    attacks = [
        f"'); open({path!r}, 'w'); ('",
        f"''' + str(open({path!r}, 'w')) + '''",
        f"\nopen({path!r}, 'w')\n#",
        f"\r\nopen({path!r}, 'w')\r\n",
        f'\x0c"; open({path!r}, "w"); "',
        f"{{open({path!r}, 'w')}}",
        f"\"); require('fs').writeFileSync({path!r}, 'x'); (\"",
        f"${{require('fs').writeFileSync({path!r}, 'x')}}",
        f"\u2028require('fs').writeFileSync({path!r}, 'x')//",
        f"*/ require('fs').writeFileSync({path!r}, 'x'); /*",
        f'*/ static int x = system("touch {path}"); /*',
        f'??/\nsystem("touch {path}");',
        f'\\\nsystem("touch {path}");',
        f'"; system("touch {path}"); "',
        f"</script><script>require('fs').writeFileSync({path!r}, 'x')</script>",
    ]
    n = len(attacks)
    table = {
        name: [attacks[(i + k) % n] for k in range(3 * n)]
        for i, name in enumerate(attacks)
    }
    labels = [attacks[k * 7 % 5] for k in range(3 * n)]
    estimator = CARTClassifier(max_depth=6)
    model = estimator.fit(table, labels).model_
    done = export.verify(model, target)
    if done.absent:
        pytest.skip(done.absent[0])
    assert done.ok, str(done)
    assert not marker.exists()


def test_scripts_are_safe_in_a_page():
    for model in random_models(5, seed=5):
        text = export.write(model, "javascript").decode("ascii")
        assert "</" not in text
        assert "<!--" not in text
        assert "-->" not in text
        assert "]]>" not in text


def test_comments_end_where_their_line_ends():
    for text in (*HOSTILE, "a\\", "??/", "*/", "\u2028", "\x85", "\x00", "\u202e"):
        shown = comment(text)
        assert shown.isascii()
        assert shown.isprintable()
        assert not set("*/<>&?") & set(shown)
        assert not shown.endswith("\\")
    assert comment("Größe") == "Gr\\xf6\\xdfe"
    assert comment("Größe", ascii_only=False) == "Größe"


def test_columns_become_names():
    names = [
        "outlook",
        "Outlook",
        "größe",
        "int",
        "lambda",
        "s1",
        "",
        "2nd",
        "שלום",
        "a  b",
    ]
    assert identifiers(names) == [
        "outlook",
        "outlook_2",
        "gro_e",
        "int_column",
        "lambda_column",
        "s1_column",
        "column",
        "column_2nd",
        "column_2",
        "a_b",
    ]
    many = identifiers([*HOSTILE, *HOSTILE, *("x" * 100, "x" * 101)])
    assert len(set(many)) == len(many)
    assert all(re.fullmatch("[a-z][a-z0-9_]*", name) for name in many)


# Python


def test_python_needs_little():
    for model in random_models(5, seed=50):
        tree = ast.parse(export.write(model, "python"), feature_version=(3, 8))
        imported = [n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
        assert imported == ["math", "numbers"]
        assert not [n for n in ast.walk(tree) if isinstance(n, ast.Import)]
        called = {
            n.func.id
            for n in ast.walk(tree)
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
        }
        assert not called & {"eval", "exec", "open", "compile", "__import__"}


def test_python_refuses_by_column(weather):
    tree = module_of(weather)
    assert tree["CLASSES"] == ("no", "yes")
    assert tree["COLUMNS"] == ("outlook", "humidity", "windy")
    assert tree["predict"]({"outlook": "overcast"}) == "yes"
    assert tree["predict_proba"]({"outlook": "overcast"}) == [0.0, 1.0]
    assert tree["predict"]({}) == tree["predict"]({"humidity": float("nan")})
    with pytest.raises(ValueError, match=r"Column 'outlook' must be text. Got 7."):
        tree["predict"]({"outlook": 7})
    with pytest.raises(
        ValueError, match=r"Column 'humidity' must be a number. Got True"
    ):
        tree["predict"]({"humidity": True})
    for infinite in (float("inf"), 10**400):
        with pytest.raises(ValueError, match="'humidity' must be a finite number"):
            tree["predict"]({"humidity": infinite})


def strict_model():
    table = {"flag": [True, False, True, False], "n": [1, 2, 1, 2], "t": list("aabb")}
    policies = {"missing": "error", "unseen": "error", "categorical_features": ["n"]}
    labels = [True, True, True, False]
    return ID3Classifier(**policies).fit(table, labels).model_


def test_python_refuses_what_the_model_refuses():
    tree = module_of(strict_model())
    row = dict.fromkeys(tree["COLUMNS"])
    with pytest.raises(
        ValueError, match=r"Column '.*' is missing, which the tree refus"
    ):
        tree["predict"](row)
    row = {"flag": True, "n": 1, "t": "c"}
    with pytest.raises(
        ValueError, match="Column 't' has the value 'c', which training"
    ):
        tree["predict"](row)


def test_python_shows_words_but_no_letters_that_turn_lines():
    table = {"größe": ["hübsch", "שלום", "\u202e"] * 4}
    text = export.write(fit(table, list("abc") * 4), "python").decode()
    assert "if gro_e == 'hübsch':" in text
    assert "שלום" not in text
    assert "\u202e" not in text


# JavaScript


def node(script, tmp_path):
    (tmp_path / "script.js").write_text(script, encoding="utf-8")
    done = subprocess.run(
        [shutil.which("node"), "script.js"],
        cwd=tmp_path,
        capture_output=True,
        check=True,
        text=True,
    )
    return json.loads(done.stdout)


@needs_node
def test_javascript_is_a_module_and_a_global(weather, tmp_path):
    (tmp_path / "weather.js").write_bytes(export.write(weather, "javascript", name="w"))
    script = """
    const fs = require("fs"), vm = require("vm"), tree = require("./weather.js");
    const page = {};
    vm.runInNewContext(fs.readFileSync("weather.js", "utf8"), page);
    const said = (row) => { try { return tree.predict(row); } catch (e) {
        return `${e.name}: ${e.message}`; } };
    console.log(JSON.stringify([Object.keys(page), tree.CLASSES, tree.COLUMNS,
        page.w.predict({outlook: "overcast"}), tree.predictProba({outlook: "overcast"}),
        said({outlook: 7}), said({humidity: Infinity}), said({humidity: NaN}),
        said(Object.create({outlook: "sunny"}))]));
    """
    assert node(script, tmp_path) == [
        ["w"],
        ["no", "yes"],
        ["outlook", "humidity", "windy"],
        "yes",
        [0, 1],
        'RangeError: Column "outlook" must be a string. Got a number.',
        'RangeError: Column "humidity" must be a finite number.',
        "yes",
        "yes",
    ]


@needs_node
def test_javascript_refuses_what_the_model_refuses(tmp_path):
    (tmp_path / "tree.js").write_bytes(export.write(strict_model(), "javascript"))
    script = """
    const tree = require("./tree.js");
    const said = (row) => { try { return tree.predict(row); } catch (e) {
        return e.message; } };
    console.log(JSON.stringify([said({flag: true, n: 1, t: "c"}),
        said({flag: null, n: 1, t: "a"}), said({flag: true, n: 1, t: "a"})]));
    """
    assert node(script, tmp_path) == [
        'Column "t" has the value "c", which training did not have.',
        'Column "flag" is missing, which the tree refuses.',
        True,
    ]


# C


def verified_with(flags, model, n_rows=200):
    plan = plan_of(model)
    rows = probe_rows(plan, n_rows)
    content = export.write(model, "c")
    answers = compile_and_run(content, plan, rows, "tree", flags)
    for row, answer in zip(rows, answers, strict=True):
        assert same(follow(plan, row), answer, plan), row


@needs_c
def test_c_has_no_warnings():
    for model in random_models(4, seed=307):
        verified_with(STRICT, model)


@needs_c
@pytest.mark.slow
def test_c_has_no_undefined_behaviour():
    sanitized = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    for model in random_models(26, seed=400):
        verified_with((*STRICT, *sanitized), model, 1000)


@needs_c
def test_c_without_undefined_behaviour_where_cases_are_divided():
    sanitized = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    plan = plan_of_shape(60, deep=False, divides=True)
    content = verification.TARGETS["c"].write(plan, {"name": "tree"})
    rows = rows_for(50)
    answers = compile_and_run(content, plan, rows, "tree", (*STRICT, *sanitized))
    assert all(
        same(follow(plan, r), a, plan) for r, a in zip(rows, answers, strict=True)
    )


@needs_c
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
def test_c_is_also_cpp(tmp_path):
    for number, model in enumerate(random_models(3, seed=509)):
        file = tmp_path / f"tree_{number}.c"
        file.write_bytes(export.write(model, "c"))
        strict = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]
        command = [shutil.which("g++"), "-x", "c++", "-std=c++17", *strict, str(file)]
        subprocess.run(command, check=True)


@needs_c
def test_ensembles_in_c_give_no_warning(tmp_path):
    ensembles = [random_boosting(kind, 12 + kind % 4) for kind in (6, 9, 12, 13)]
    ensembles += [
        random_boosting(12, 14),
        random_boosting(12, 15),
        random_ensemble(9, 9),
    ]
    for ensemble in ensembles:
        file = tmp_path / "ensemble.c"
        file.write_bytes(export.write(ensemble, "c"))
        subprocess.run([compiler(), *STRICT, "-fsyntax-only", str(file)], check=True)


CALLER = """
#include <stdio.h>
#define WEATHER_DECLARATIONS_ONLY
#include "weather.c"

int main(void)
{
    double chances[WEATHER_CLASSES];
    struct weather_row row = weather_missing_row;
    row.outlook = "sunny";
    row.humidity = 70;
    printf("%s", weather_classes[weather_predict(&row, chances)]);
    printf(" %g %g", chances[0], chances[1]);
    row.humidity = 1e308 * 10;
    printf(" %s\\n", weather_columns[-1 - weather_predict(&row, NULL)]);
    return 0;
}
"""


@needs_c
def test_c_is_compiled_on_its_own(weather, tmp_path):
    (tmp_path / "weather.c").write_bytes(export.write(weather, "c", name="weather"))
    (tmp_path / "caller.c").write_text(CALLER, encoding="ascii")
    command = [compiler(), *STRICT, "caller.c", "weather.c", "-o", "caller", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run(["./caller"], cwd=tmp_path, check=True, capture_output=True)
    assert done.stdout == b"yes 0 1 humidity\n"


@needs_c
def test_c_carries_texts_longer_than_its_strings():
    long = ["é" * 5000, "é" * 5000 + "?"]
    model = fit({"t": long * 3}, long * 3)
    verified_with(STRICT, model)


def test_c_refuses_texts_that_it_cannot_have(weather):
    model = fit({"t": ["a\0b", "c"] * 3}, ["x", "y"] * 3)
    with pytest.raises(
        ExportError, match=r"C cannot have the text 'a\\x00b': its texts"
    ):
        export.write(model, "c")
    model = fit({"t": ["a", "b"] * 3}, ["\ud800", "y"] * 3)
    with pytest.raises(ExportError, match=r"'\\ud800', which is no valid Unicode"):
        export.write(model, "c")
    rows = {name: [None] for name in weather.schema.names} | {"outlook": ["a\0"]}
    with pytest.raises(ExportError, match=r"'outlook' has the value 'a\\x00' in a row"):
        export.verify(weather, "c", rows)


# Options and limits


def test_names_are_checked(weather):
    for target in ("c", "javascript"):
        for name in ("", "2x", "a b", "int", "x;", "lambda", "é", "_x", "x" * 61):
            with pytest.raises(ParameterError, match=r"name of the export .* Got "):
                export.write(weather, target, name=name)
        assert export.verify(weather, target, name="My_tree").differences == ()
    with pytest.raises(
        ParameterError, match=r"Node.js give a meaning to. Got 'window'"
    ):
        export.write(weather, "javascript", name="window")


def test_large_whole_numbers_are_refused():
    leaf = Node(None, 0, 0, (0.5, 0.5), None)
    plan = Plan("t", "one leaf", (), (2**53 + 1, 2), (leaf,), False, False, None)
    with pytest.raises(ExportError, match="JavaScript cannot tell 9007199254740993"):
        verification.TARGETS["javascript"].write(plan, {"name": "tree"})
    assert run("python", plan, [()]) == [(2**53 + 1, (0.5, 0.5))]


@pytest.mark.parametrize("target", LANGUAGES)
def test_a_tree_of_one_leaf(target):
    leaf = Node(None, 0, 1, (0.25, 0.75), None)
    plan = Plan("t", "one leaf", (), ("a", "b"), (leaf,), False, False, None)
    assert run(target, plan, [(), ()]) == [("b", (0.25, 0.75))] * 2
    number = Node(None, 0, 0, (), 1 / 3)
    plan = Plan("t", "one leaf", (), (), (number,), False, False, None)
    assert run(target, plan, [()]) == [(1 / 3, ())]


@pytest.mark.parametrize("target", LANGUAGES)
def test_numbers_that_are_not_finite_are_refused(target):
    leaf = Node(None, 0, 0, (), float("inf"))
    plan = Plan("t", "one leaf", (), (), (leaf,), False, False, None)
    chosen = verification.TARGETS[target]
    with pytest.raises(ExportError, match=r"not finite \(inf\)"):
        chosen.write(plan, chosen.options({}))


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("c", "there is no C compiler here (cc, gcc, clang)"),
        ("javascript", "there is no Node.js here (node)"),
    ],
)
def test_what_is_not_there_is_told(weather, target, reason, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    done = export.verify(weather, target)
    assert not done.ok
    assert str(done) == f"{target}: not run: {reason}"


def test_a_program_that_fails_is_told(weather, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(ExportError, match="The export does not run: /bin/false says"):
        export.verify(weather, "python")


def test_lists_are_wrapped_between_items():
    lines = spelling.wrapped([f"'a, {i}'" for i in range(40)], "    ")
    assert max(map(len, lines)) <= 79
    assert "".join(lines).count(",") == 80


# JSON rules, which are cut like programs


def test_shallow_json_rules_have_one_part(weather):
    document = json.loads(export.write(weather, "json"))
    assert document["version"] == 1
    assert "parts" not in document


@pytest.mark.parametrize("divides", [True, False])
@pytest.mark.parametrize(
    "levels", [101, 3000, pytest.param(100_000, marks=pytest.mark.slow)]
)
def test_deep_json_rules_repeat_no_way(levels, divides):
    # At 100,000 levels, rules that repeat their ways would have 10^10 conditions.
    plan = plan_of_shape(levels, True, divides)
    content = json_rules.write(plan, {"indent": "1"})
    assert len(content) < 500 * levels
    document = json.loads(content)
    assert document["version"] == 2
    assert len(document["parts"]) == levels - 1
    assert_right("json", plan, rows_for(20))


def test_json_rules_of_trees_that_are_cut_into_parts(monkeypatch):
    """Questions of all kinds, surrogates, and divided cases."""
    monkeypatch.setattr(json_rules, "_MOST_LEVELS", 1)
    cut = 0
    for model in random_models(26, seed=7):
        plan = plan_of(model)
        cut += b'"parts"' in json_rules.write(plan, {"indent": "0"})
        assert_right("json", plan, probe_rows(plan, 40))
    assert cut > 10


def test_what_users_wrote_is_no_name_of_a_template():
    """A target called as a name of the template stays what it is."""
    name = "@uses@ @name@ @p@"
    model = fit({"a": ["x", "y"]}, ["@p@", "@uses@"], target_name=name)
    for target in ("c", "javascript", "python"):
        head = export.write(model, target).decode().split("\n", 1)[0]
        assert repr(name) in head
