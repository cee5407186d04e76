"""No parameter is silently without effect: estimators and subcommands, one by one.

Every parameter has a row here that says which value is tried, and beside which others.
It must change something, or be refused by an error of ours; given alone, too. A
parameter without a row fails the test.
"""

from __future__ import annotations

import csv
import inspect
import re
from typing import Any, NamedTuple

import click
import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from branchwise import C45Classifier, CARTClassifier, CARTRegressor, ID3Classifier
from branchwise.cli.main import app
from branchwise.cli.options import growing
from branchwise.errors import BranchwiseError
from branchwise.recipe import FIELDS
from branchwise.recipe.parameters import PARAMETERS

# -- Estimators


def table():
    """Return rows with missing values, noise, and a column of coded names."""
    rng = np.random.default_rng(18)
    n = 200
    X: dict[str, list[Any]] = {
        "c": rng.choice(list("stuvwxyz"), n).tolist(),
        "d": rng.choice(["p", "q", "r"], n).tolist(),
        "n": rng.normal(size=n).round(1).tolist(),
        "k": rng.integers(0, 4, n).tolist(),
    }
    noise = rng.random(n)
    y = [
        "b" if (c in "xyz") != (d == "p") or e > 0.8 else "a" if v + e > 0 else "c"
        for c, d, v, e in zip(X["c"], X["d"], X["n"], noise, strict=True)
    ]
    for name in ("c", "n"):
        X[name] = [
            v if keep else None
            for v, keep in zip(X[name], rng.random(n) > 0.1, strict=True)
        ]
    numbers = [
        {"a": 1.0, "b": 4.0, "c": 9.0}[label] + e
        for label, e in zip(y, noise, strict=True)
    ]
    return X, y, numbers


X, LABELS, NUMBERS = table()
#: Rows that have missing and unseen values.
PROBES = {
    "c": [*X["c"][:40], "never seen", None, "x"],
    "d": [*X["d"][:40], "never seen", "p", "never seen"],
    "n": [*X["n"][:40], 0.5, None, None],
    "k": [*X["k"][:40], 1, 2, 3],
}


class Try(NamedTuple):
    """A value, and the parameters that it needs beside it.

    ``usual`` says that alone it means what some default means, whose name is other.
    """

    value: Any
    beside: dict[str, Any] = {}  # noqa: RUF012
    usual: bool = False


ERRORS = {"pruning": "error-based"}
HELD_OUT = {"pruning": "reduced-error", "validation_fraction": 0.3}
PRICED = {"pruning": "cost-complexity"}
COSTS = [[0, 9, 1], [1, 0, 9], [1, 1, 0]]
TRIES: dict[str, list[Try]] = {
    "criterion": [
        Try("gini"),
        Try("gain"),
        Try("poisson"),
        Try(lambda p, b: b[:, 0, 0]),
    ],
    "max_depth": [Try(1)],
    "min_samples_split": [Try(60), Try(0.5)],
    "min_samples_leaf": [Try(20), Try(0.2)],
    "min_weight_fraction_leaf": [Try(0.2)],
    "min_samples_branch": [Try(20)],
    "min_gain": [Try(0.2)],
    "categorical_features": [Try("all"), Try(["k"])],
    "categories": [Try({"c": ["z", "y", "x", "u", "v", "w"]})],
    "order": [Try({"c": ["z", "y", "x", "u", "v", "w"]})],
    "missing": [Try("node"), Try("split"), Try("largest"), Try("error")],
    "unseen": [
        Try("error"),
        Try("node"),
        Try("largest"),
        # Taken for a missing value, which goes the same way by default.
        Try("branch", {"missing": "node"}, usual=True),
    ],
    "class_weight": [Try("balanced"), Try({"a": 5.0})],
    "max_bins": [Try(2)],
    "max_leaf_nodes": [Try(3)],
    "max_p_value": [Try(0.001)],
    "group_values": [Try(True)],
    "cross_validate": [Try(True, {"group_values": True})],
    "threshold": [Try("midpoint")],
    # Numbers as names: no other column has many values.
    "many_values": [Try("plain", {"categorical_features": "all"}, usual=True)],
    "prune": [Try(False)],
    "pruning": [
        Try("error-based"),
        Try("reduced-error"),
        # Leaves that cost nothing: splits go that gain nothing.
        Try("cost-complexity", {"ccp_alpha": 0.05}, usual=True),
    ],
    "confidence": [Try(0.01, ERRORS)],
    "raise_subtrees": [Try(False, {**ERRORS, "missing": "largest"})],
    "tolerance": [Try(0.2, HELD_OUT)],
    "validation_fraction": [Try(0.4, HELD_OUT)],
    "ccp_alpha": [Try(0.05, PRICED), Try("best", PRICED)],
    "risk": [Try("errors", {**PRICED, "ccp_alpha": 0.05})],
    "priors": [Try({"a": 0.1, "b": 0.1, "c": 0.8})],
    "costs": [Try(COSTS)],
    "costs_in": [Try("growth", {"costs": COSTS})],
    "probabilities": [Try("laplace"), Try("m-estimate"), Try("shrunk")],
    "m": [Try(30.0, {"probabilities": "m-estimate"})],
    "shrinkage": [Try(3.0, {"probabilities": "shrunk"})],
}
#: What changes how long it takes, and nothing else.
SPEED = {"n_jobs"}


def outcome(estimator):
    """Return all that a fitted estimator is and says, or that it is refused."""
    y = NUMBERS if isinstance(estimator, CARTRegressor) else LABELS
    try:
        model = estimator.fit(X, y).model_
    except BranchwiseError as error:
        return type(error)
    arrays = [getattr(model.tree, spec.name).tolist() for spec in model.tree.arrays]
    answers = [
        _answers(model, PROBES),
        _answers(model, {k: v[:3] for k, v in X.items()}),
    ]
    return repr((arrays, model.schema, answers))


def _answers(model, rows):
    try:
        chances = [] if model.tree.is_regression else model.predict_proba(rows)
        return model.predict(rows).tolist(), np.asarray(chances).tolist()
    except BranchwiseError as error:
        return str(error)


@pytest.mark.parametrize(
    "estimator", [ID3Classifier, C45Classifier, CARTClassifier, CARTRegressor]
)
def test_every_parameter_of_an_estimator_does_something(estimator):
    parameters = inspect.signature(estimator).parameters
    assert set(parameters) - set(TRIES) - SPEED == set(), "parameters without a row"
    seen: dict[str, Any] = {}

    def found(**given):
        key = repr(given)
        if key not in seen:
            seen[key] = outcome(estimator(**given))
        return seen[key]

    silent = []
    for name in set(parameters) - SPEED:
        changes = False
        for value, beside, usual in TRIES[name]:
            if value == parameters[name].default:
                continue
            needed = {k: v for k, v in beside.items() if k in parameters and k != name}
            if found(**{name: value}) == found() and not usual:
                silent.append((name, value))
            changes |= found(**needed, **{name: value}) != found(**needed)
        if not changes:
            silent.append(name)
    assert silent == []


def test_every_row_is_of_a_parameter():
    known = [
        inspect.signature(estimator).parameters
        for estimator in (ID3Classifier, C45Classifier, CARTClassifier, CARTRegressor)
    ]
    assert set(TRIES) | SPEED == set().union(*known)


@pytest.mark.parametrize("name", SPEED)
def test_what_changes_only_speed_is_checked_all_the_same(name):
    with pytest.raises(BranchwiseError, match=name):
        ID3Classifier(**{name: 0}).fit(X, LABELS)


# -- Subcommands


class Row(NamedTuple):
    """Arguments that give an option a value, and those that it needs beside it.

    ``usual`` says that alone it means what the default means.
    """

    arguments: str
    beside: str = ""
    usual: bool = False


COMMAND = typer.main.get_command(app)
CONTEXT = click.Context(COMMAND)
SUBCOMMANDS = COMMAND.list_commands(CONTEXT)
#: What each subcommand is run with besides; {} is the folder of the files.
USUAL = {
    "fit": "fit {}/rows.csv -t y -a id3 --ignore w",
    "predict": "predict {}/tree.json {}/rows.csv",
    "show": "show {}/tree.json",
    "view": "view {}/tree.json -o - --no-open",
    "rules": "rules {}/tree.json",
    "steps": "steps {}/rows.csv -t y -a id3 --ignore w",
    "explain": "explain {}/tree.json {}/rows.csv",
    "what-if": "what-if {}/tree.json {}/rows.csv --row 2",
    "diff": "diff {}/tree.json {}/other.json {}/rows.csv",
    "evaluate": "evaluate {}/rows.csv -t y -a id3 --ignore w --cv 2",
    "tune": "tune {}/rows.csv -t y -a id3 --ignore w --cv 2 --grid min_gain=0,0.01",
    "report": "report {}/rows.csv -t y --ignore w --cv 2 -o {}/page.html",
    "prune": "prune {}/tree.json --collapse 3",
    "export": "export {}/tree.json --to json",
    "schema": "schema {}/rows.csv",
    "studio": "studio {}/rows.csv -t y -a id3 --ignore w",
}
#: How a table is read: for every subcommand that reads one.
READING = {
    "--from": Row("--from tsv"),
    "--separator": Row("--separator ;"),
    "--encoding": Row("--encoding cp037"),
    "--no-header": Row("--no-header"),
    "--names": Row("--names p,q,r,s,t,u", "--no-header"),
    "--names-file": Row("--names-file {}/absent.names"),
    "--sheet": Row("--sheet other"),
    "--table": Row("--table other"),
    "--query": Row("--query SELECT"),
    "--max-size": Row("--max-size 1"),
    "--skip": Row("--skip 3"),
    "--decimal": Row("--decimal x"),
    "--thousands": Row("--thousands x"),
    "--date-format": Row("--date-format x"),
    "--date-features": Row("--date-features x"),
    # The values of this table differ in more than case; tests/files has others.
    "--merge-case": Row("--merge-case", usual=True),
    "--missing": Row("--missing x"),
}
C45 = "-a c4.5"
HELD = "--pruning reduced-error --validation-fraction 0.3"
GROWING = {
    "--algorithm": Row("-a cart"),
    "--regression": Row("--regression", "-a cart"),
    "--categorical": Row("--categorical k"),
    "--numeric": Row("--numeric c"),
    "--ignore": Row("--ignore c"),
    "--categories": Row("--categories {}/absent.json"),
    "--order": Row("--order {}/absent.json"),
    "--criterion": Row("--criterion gini"),
    "--max-depth": Row("--max-depth 1"),
    "--max-leaf-nodes": Row("--max-leaf-nodes 2"),
    "--min-samples-split": Row("--min-samples-split 150"),
    "--min-samples-leaf": Row("--min-samples-leaf 60"),
    "--min-weight-fraction-leaf": Row("--min-weight-fraction-leaf 0.4"),
    "--min-samples-branch": Row("--min-samples-branch 60", C45),
    "--min-gain": Row("--min-gain 0.5"),
    "--max-p-value": Row("--max-p-value 1e-9"),
    "--group-values": Row("--group-values", C45),
    "--cross-validate": Row("--cross-validate", f"{C45} --group-values"),
    "--threshold": Row("--threshold midpoint"),
    "--many-values": Row("--many-values plain", "-a cart --categorical n"),
    "--missing-policy": Row("--missing-policy error"),
    "--unseen-policy": Row("--unseen-policy error"),
    "--max-bins": Row("--max-bins 2"),
    "--pruning": Row("--pruning error-based"),
    "--no-prune": Row("--no-prune", C45),
    "--confidence": Row("--confidence 0.001", C45),
    "--no-raise-subtrees": Row("--no-raise-subtrees", C45),
    "--tolerance": Row("--tolerance 0.3", HELD),
    "--validation": Row("--validation {}/rows.csv", "--pruning reduced-error"),
    "--validation-fraction": Row(
        "--validation-fraction 0.5", "--pruning reduced-error"
    ),
    "--ccp-alpha": Row("--ccp-alpha 0.1", "-a cart"),
    "--risk": Row("--risk errors", "-a cart --ccp-alpha 0.05"),
    "--weight": Row("--weight w"),
    "--class-weight": Row("--class-weight balanced"),
    "--priors": Row("--priors a=0.1,b=0.1,c=0.8"),
    "--costs": Row("--costs a:b=99,c:b=99", "--max-depth 1", usual=True),
    "--costs-in": Row("--costs-in growth", "--costs a:b=99,c:b=99"),
    "--probabilities": Row("--probabilities laplace"),
    "--m": Row("--m 900", "--probabilities m-estimate"),
    "--shrinkage": Row("--shrinkage 3", "--probabilities shrunk"),
}
FOREST = "-a forest --n-estimators 3"
GRADIENT = "-a gradient --n-estimators 3"
ENSEMBLES = {
    "--base": Row("--base id3", FOREST),
    "--n-estimators": Row("--n-estimators 2", FOREST),
    "--max-features": Row("--max-features all", FOREST),
    "--no-bootstrap": Row("--no-bootstrap", FOREST),
    "--max-samples": Row("--max-samples 0.3", FOREST),
    "--splitter": Row("--splitter random", FOREST),
    "--voting": Row("--voting hard", f"{FOREST} --max-depth 2"),
    "--random-state": Row("--random-state 1", FOREST),
    "--loss": Row("--loss poisson", f"{GRADIENT} --regression -t k"),
    "--learning-rate": Row("--learning-rate 0.9", GRADIENT),
    "--subsample": Row("--subsample 0.5", GRADIENT),
    "--n-iter-no-change": Row("--n-iter-no-change 1", "-a gradient --max-depth 1"),
    "--tol": Row("--tol 9", "-a gradient --n-iter-no-change 1"),
    "--max-rules": Row("--max-rules 1", "-a rules"),
    "--rule-cost": Row("--rule-cost 2", "-a rules"),
}
#: Options of several subcommands that do the same there.
SHARED = {
    **READING,
    **GROWING,
    **ENSEMBLES,
    "--target": Row("-t k"),
    "--format": Row("--format json"),
    "--output": Row("-o {}/written"),
    "--row": Row("--row 1"),
    "--cv": Row("--cv 3"),
    "--seed": Row("--seed 5"),
    "--hold-out": Row("--hold-out 0.5"),
    "--title": Row("--title Other"),
    "--style": Row("--style markdown"),
    "--tree": Row("--tree 0"),
    "--name": Row("--name Loans", "-o -"),
    "--notes": Row("--notes tested", "-o -"),
    "--date": Row("--date 2026-03-31", "-o -"),
    "--drop-unused": Row("--drop-unused", "-o -"),
    "--labels": Row("--labels {}/labels.json"),
}
C45_ONLY = [option for option, row in GROWING.items() if row.beside == C45]
WHOLE = f"{C45} --no-prune --format json"
BEST = "-o {}/best.json"
LISTED = "--generalise {}/rows.csv"
#: What is particular to one subcommand.
OWN = {
    # What only a model file and its predictions have.
    ("fit", "--unseen-policy"): Row("--unseen-policy error", "-o -", usual=True),
    ("fit", "--probabilities"): Row("--probabilities laplace", "-o -", usual=True),
    ("fit", "--data-hash"): Row("--data-hash", "-o -"),
    ("fit", "--drop-unused"): Row("--drop-unused", "-o - --max-depth 1"),
    ("fit", "--engine"): Row("--engine sql"),
    ("fit", "--max-exact"): Row("--max-exact 2", "--engine chunked"),
    ("fit", "--no-cache"): Row("--no-cache"),
    ("fit", "--temporary-folder"): Row("--temporary-folder {}"),
    ("fit", "--temporary-tables"): Row("--temporary-tables"),
    ("fit", "--timeout"): Row("--timeout 9"),
    ("fit", "--scheduler"): Row("--scheduler x"),
    ("fit", "--master"): Row("--master x"),
    **{
        ("fit", option): Row(row.arguments, f"{row.beside} -o {{}}/ensemble.json")
        for option, row in ENSEMBLES.items()
    },
    ("predict", "--proba"): Row("--proba"),
    ("predict", "--keep"): Row("--keep"),
    ("predict", "--escape-formulas"): Row("--escape-formulas", "--keep", usual=True),
    ("predict", "--engine"): Row("--engine sql"),
    ("show", "--rules"): Row("--rules"),
    ("show", "--max-nodes"): Row("--max-nodes 3", "--style svg"),
    ("show", "--empty-branches"): Row("--empty-branches"),
    ("show", "--nodes"): Row("--nodes"),
    ("view", "--data"): Row("--data {}/rows.csv"),
    ("rules", "--simplify"): Row("--no-simplify"),
    ("rules", "--class"): Row("--class a"),
    ("rules", "--sort"): Row("--sort coverage"),
    ("rules", "--generalise"): Row(LISTED),
    ("rules", "--test"): Row("--test {}/rows.csv", LISTED),
    ("rules", "--target"): Row("--target k", LISTED),
    ("rules", "--weight"): Row("--weight w", LISTED),
    ("rules", "--confidence"): Row("--confidence 0.001", LISTED),
    ("rules", "--missing"): Row("--missing x", LISTED),
    ("steps", "--model"): Row("--model {}/tree.json"),
    ("steps", "--node"): Row("--node 1"),
    ("steps", "--digits"): Row("--digits 5"),
    ("steps", "--reveal"): Row("--reveal", "--style html"),
    ("steps", "--worksheet"): Row("--worksheet"),
    ("steps", "--rows"): Row("--rows"),
    # A root says nothing of how leaves below it are pruned.
    ("steps", "--confidence"): Row("--confidence 0.001", f"{C45} --node all"),
    ("steps", "--no-raise-subtrees"): Row("--no-raise-subtrees", f"{C45} --node all"),
    ("steps", "--no-prune"): Row("--no-prune", f"{C45} --node all"),
    ("steps", "--probabilities"): Row("--probabilities laplace"),
    ("steps", "--m"): Row("--m 900", "--probabilities m-estimate --node all"),
    ("explain", "--set"): Row("--set c=x", "--row 0"),
    ("explain", "--level"): Row("--level 0.5"),
    ("explain", "--shap"): Row("--shap"),
    ("explain", "--background"): Row("--background {}/rows.csv", "--shap"),
    ("what-if", "--set"): Row("--set n=9"),
    ("what-if", "--target"): Row("--target c"),
    ("what-if", "--row"): Row("--row 5"),
    ("what-if", "--immutable"): Row("--immutable c,d,n,k"),
    ("what-if", "--cost"): Row("--cost c=inf --cost n=inf --cost d=7"),
    ("what-if", "--monotone"): Row("--monotone n=up --immutable c,d,k"),
    ("what-if", "--whole"): Row("--whole n --immutable c,d,k"),
    ("what-if", "--allow-missing"): Row(
        "--allow-missing", "--row 1 --immutable c,n", usual=True
    ),
    ("what-if", "--how-many"): Row("--how-many 3"),
    ("diff", "--target"): Row("--target k"),
    ("diff", "--exit-code"): Row("--exit-code"),
    # Scores are coarse: these trees are large enough to differ.
    ("evaluate", "--min-samples-branch"): Row("--min-samples-branch 60", WHOLE),
    ("evaluate", "--group-values"): Row("--group-values", WHOLE),
    # Of one table hardly a row lies between the two; forests refuse it.
    ("evaluate", "--threshold"): Row(
        "--threshold midpoint", "--algorithm forest", usual=True
    ),
    ("evaluate", "--confidence"): Row("--confidence 0.5", f"{C45} --format json"),
    ("evaluate", "--no-raise-subtrees"): Row(
        "--no-raise-subtrees", f"{C45} --confidence 0.5 --format json"
    ),
    **{
        ("tune", option): Row(GROWING[option].arguments, f"{C45} -o {{}}/best.json")
        for option in C45_ONLY
    },
    # What only a model file and its predictions have.
    ("tune", "--threshold"): Row("--threshold midpoint", BEST, usual=True),
    ("tune", "--unseen-policy"): Row("--unseen-policy error", BEST, usual=True),
    ("tune", "--probabilities"): Row("--probabilities laplace", BEST, usual=True),
    ("evaluate", "--compare"): Row("--compare cart"),
    ("evaluate", "--repeats"): Row("--repeats 2"),
    ("tune", "--grid"): Row("--grid max_depth=1,2"),
    ("tune", "--results"): Row("--results {}/results.csv"),
    ("tune", "--plot"): Row("--plot {}/plot.svg"),
    ("tune", "--resume"): Row("--resume {}/state.json"),
    ("tune", "--method"): Row("--method random"),
    ("tune", "--scoring"): Row("--scoring balanced_accuracy"),
    ("tune", "--one-se"): Row("--one-se"),
    # The tree that is chosen of this small table is the usual one.
    ("steps", "--cross-validate"): Row(
        f"{C45} --group-values --cross-validate", usual=True
    ),
    # Worked solutions have no probabilities.
    ("steps", "--shrinkage"): Row("--probabilities shrunk --shrinkage 3", usual=True),
    ("report", "--test"): Row("--test {}/rows.csv"),
    ("report", "--output"): Row("-o {}/other.html"),
    ("prune", "--method"): Row("--method error-based"),
    ("prune", "--data"): Row("--data {}/rows.csv", "--method reduced-error"),
    ("prune", "--target"): Row(
        "--target k", "--method reduced-error --data {}/rows.csv"
    ),
    ("prune", "--weight"): Row("--weight w", "--method error-based --data {}/rows.csv"),
    ("prune", "--missing"): Row(
        "--missing x", "--method reduced-error --data {}/rows.csv"
    ),
    ("prune", "--confidence"): Row("--confidence 0.01", "--method error-based"),
    ("prune", "--no-raise-subtrees"): Row(
        "--no-raise-subtrees", "--method error-based --data {}/rows.csv"
    ),
    ("prune", "--tolerance"): Row(
        "--tolerance 0.3", "--method reduced-error --data {}/rows.csv"
    ),
    ("prune", "--ccp-alpha"): Row("--ccp-alpha 0.1", "--method cost-complexity"),
    ("prune", "--risk"): Row(
        "--risk errors", "--method cost-complexity --ccp-alpha 0.1"
    ),
    ("prune", "--collapse"): Row("--collapse 2"),
    ("prune", "--merge-same-leaves"): Row("--merge-same-leaves --change-probabilities"),
    ("prune", "--change-probabilities"): Row(
        "--change-probabilities", "--merge-same-leaves"
    ),
    ("prune", "--path"): Row("--path"),
    ("prune", "--drop-unused"): Row("--drop-unused", "-o - --collapse 0"),
    ("export", "--to"): Row("--to python"),
    ("export", "--option"): Row("--option nothing=1"),
    ("export", "--verify"): Row("--verify {}/rows.csv"),
    ("export", "--no-verify"): Row("--no-verify"),
    ("export", "--missing"): Row("--missing x", "--verify {}/rows.csv"),
    ("studio", "--session"): Row("--session {}/absent.json"),
    ("studio", "--journal"): Row("--journal {}/x.actions.json"),
    ("studio", "--port"): Row("--port 8765"),
    ("studio", "--max-upload"): Row("--max-upload 1MB"),
}
#: Speed, windows and notes: no results change.
NO_RESULTS = {"--n-jobs", "--jobs", "--quiet", "--no-open", "--no-browser"}
#: Whose every run takes seconds.
SLOW = ("evaluate", "tune", "report")
#: Where options that several subcommands have are tried out in the quick tests.
TRIED_IN = {
    **dict.fromkeys(READING, "schema"),
    **dict.fromkeys((*GROWING, *ENSEMBLES), "fit"),
}


def options_of(subcommand: str) -> list[str]:
    parameters = COMMAND.get_command(CONTEXT, subcommand).params
    return [p.opts[0] for p in parameters if p.param_type_name == "option"]


def row_of(subcommand: str, option: str) -> Row | None:
    return OWN.get((subcommand, option), SHARED.get(option))


def test_every_option_has_a_row_and_every_row_an_option():
    every = {(name, option) for name in SUBCOMMANDS for option in options_of(name)}
    known = {option for _, option in every}
    lacking = [
        pair for pair in every if pair[1] not in NO_RESULTS and row_of(*pair) is None
    ]
    assert lacking == []
    assert set(OWN) <= every
    assert set(SHARED) | NO_RESULTS <= known


@pytest.fixture(scope="module", name="folder")
def folder_of_files(tmp_path_factory):
    """Return a folder with a table and two models."""
    folder = tmp_path_factory.mktemp("options")
    (folder / "labels.json").write_text('{"c": "Colour"}', encoding="utf-8")
    with (folder / "rows.csv").open("w", newline="", encoding="utf-8") as file:
        written = csv.writer(file)
        written.writerow(["c", "d", "n", "k", "w", "y"])
        for at, label in enumerate(LABELS):
            cells = [X[name][at] for name in ("c", "d", "n", "k")]
            # Once only, so unseen in a fold; a spreadsheet takes it for a formula.
            cells[1] = "=é" if at == 0 else cells[1]
            row = ["?" if cell is None else cell for cell in cells]
            written.writerow([*row, 1 + at % 3, label])
    for name, options in (
        ("tree", "-a id3 --max-depth 6"),
        ("other", "-a cart --max-depth 2"),
    ):
        run(
            folder,
            f"fit {{}}/rows.csv -t y --ignore w {options} -o {{}}/{name}.json",
            True,
        )
    return folder


def run(folder, line, keep=False):
    """Run a command; return its output and the files that it wrote."""
    arguments = [a.replace("{}", str(folder)) for a in line.split()]
    before = set(folder.iterdir())
    done = CliRunner().invoke(app, arguments)
    unexpected = done.exception is not None and not isinstance(
        done.exception, SystemExit
    )
    assert not unexpected, (line, done.exception)
    assert done.exit_code in (0, 1, 2), line
    written = {p.name: p.read_bytes() for p in set(folder.iterdir()) - before}
    if not keep:
        for path in set(folder.iterdir()) - before:
            path.unlink()
    return done.exit_code, _without_times(done.output), written


def _without_times(text):
    """Leave out how long things took."""
    text = re.sub(r'"\w*(seconds|time)": [^,\n]*', "", text)
    text = re.sub(r"\d+(\.\d+)? ?(ms|s|seconds?)\b", "", text)
    return re.sub(" +", " ", text)  # columns are as wide as the times in them


@pytest.fixture(autouse=True)
def _the_studio_ends_at_once(monkeypatch):
    """Print what the page would show, and how it would be served."""

    def print_state(workspace, *, on_ready, **options):
        typer.echo(f"{workspace.state()} {options}")

    monkeypatch.setattr("branchwise.cli.studio.serve", print_state)


@pytest.mark.slow
@pytest.mark.parametrize("subcommand", SUBCOMMANDS)
def test_every_option_of_a_subcommand_does_something(folder, subcommand):
    check_options(folder, subcommand, options_of(subcommand))


@pytest.mark.parametrize("subcommand", sorted({*SUBCOMMANDS} - {*SLOW}))
def test_the_options_of_a_subcommand_do_something(folder, subcommand):
    options = [
        option
        for option in options_of(subcommand)
        if (subcommand, option) in OWN or TRIED_IN.get(option, subcommand) == subcommand
    ]
    check_options(folder, subcommand, options)


NEEDY = [growing.option_of(name) for name in FIELDS if PARAMETERS[name].only_with]


@pytest.mark.parametrize("option", NEEDY)
def test_no_option_is_refused_beside_what_it_needs(folder, option):
    row = GROWING[option]
    code, output, _ = run(folder, f"{USUAL['fit']} {row.beside} {row.arguments}")
    assert code == 0, output


def check_options(folder, subcommand, options):
    seen = {}

    def found(*parts):
        line = " ".join([USUAL[subcommand], *filter(None, parts)])
        if line not in seen:
            seen[line] = run(folder, line)
        return seen[line]

    assert found()[0] == 0, found()
    assert run(folder, USUAL[subcommand]) == found(), "not the same twice"
    silent = []
    for option in options:
        row = row_of(subcommand, option)
        if option in NO_RESULTS or row is None:
            continue
        if found(row.arguments) == found() and not row.usual:
            silent.append(row.arguments)
        together = found(row.beside, row.arguments)
        if row.beside and together == found(row.beside) and together[0] == 0:
            silent.append(f"{row.beside} {row.arguments}")
    assert not silent, "\n".join(silent)


# -- Messages


def test_messages_name_options_on_the_command_line(folder):
    """What Python knows as X, y, sample_weight and categories."""
    fitted = "fit {}/rows.csv -t y --ignore w --weight k --unseen-policy error"
    run(folder, f"{fitted} -o {{}}/strict.json", keep=True)
    lines = (
        "steps {}/rows.csv --model {}/other.json --weight w",
        "prune {}/tree.json --method error-based --data {}/rows.csv --weight w",
        "explain {}/strict.json {}/rows.csv --row 0 --set d=other",
    )
    told = [run(folder, line)[1] for line in lines]
    (folder / "strict.json").unlink()
    assert "with their weights (--weight)" in told[0]
    assert "with their weights (--weight)" in told[1]
    assert "Without --data branches are not raised" in told[1]
    assert "or with another policy: node, largest, split or branch." in told[2]
    assert not any(
        word in line for word in ("sample_weight", "categories=") for line in told
    )
