"""The command line: verbs, options, streams, exit codes, messages."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from branchwise import (
    BranchwiseWarning,
    C45Classifier,
    CARTClassifier,
    CARTRegressor,
    ID3Classifier,
    __version__,
    datasets,
    fit_tree,
    load,
)
from branchwise import __main__ as launcher
from branchwise.cli import evaluate as evaluate_module
from branchwise.cli import fit as fit_module
from branchwise.cli import main as main_module
from branchwise.cli import predict as predict_module
from branchwise.cli import prune as prune_module
from branchwise.cli import show as results_module
from branchwise.cli import support
from branchwise.cli.main import main
from branchwise.cli.options import Page, growing
from branchwise.errors import BranchwiseError
from branchwise.files.csv import csv_columns as parsing
from branchwise.files.read_table import read_table
from branchwise.model import Model
from branchwise.model_file import from_bytes as load_bytes
from branchwise.recipe import C45, ID3
from branchwise.recipe.parameters import (
    BUILT_IN,
    FOR_NUMBERS,
    POLICIES,
    PROBABILITIES,
    PRUNINGS,
    named,
)
from command_line import WEATHER, output, refusal, run, usage_error
from selection import first_fast

TENNIS = datasets.path("tennis")


@pytest.fixture
def write(tmp_path):
    def write(content, name="data.csv"):
        path = tmp_path / name
        path.write_text(content, encoding="utf-8")
        return path

    return write


# The program


def test_version():
    assert output("--version") == f"branchwise {__version__}\n"


@pytest.mark.parametrize(
    "verb",
    [
        "fit",
        "predict",
        "show",
        "rules",
        "steps",
        "evaluate",
        "tune",
        "prune",
        "export",
        "schema",
        None,
    ],
)
def test_help_has_examples(verb):
    text = output(*([verb] if verb else []), "--help")
    assert "Examples:\n" in text
    assert f"\n    branchwise {verb or 'fit'} " in text
    if verb is None:
        assert all(v in text for v in ("predict", "show", "evaluate", "prune"))


ESTIMATORS = {
    "id3": ID3Classifier,
    "c4.5": C45Classifier,
    "cart": CARTClassifier,
    "cart --regression": CARTRegressor,
}
PARAMETERS = sorted({name for e in ESTIMATORS.values() for name in e().get_params()})


@pytest.mark.parametrize("parameter", PARAMETERS)
def test_every_parameter_of_an_estimator_is_an_option(parameter):
    named = growing.option_of(parameter)
    option = {"--categorical-features": "--categorical"}.get(named, named)
    assert f"\n  {option} " in output("fit", "--help")
    for name, estimator in ESTIMATORS.items():
        assert growing.has_parameter(name, parameter) == (
            parameter in estimator().get_params()
        )


def test_the_choices_are_those_of_the_library():
    text = output("fit", "--help")
    for choices in (
        POLICIES,
        PROBABILITIES,
        ("none", *PRUNINGS),
        (*named(BUILT_IN), *named(FOR_NUMBERS)),
    ):
        assert f"<{'|'.join(choices)}>" in text
    assert f"<{'|'.join(PRUNINGS)}>" in output("prune", "--help")


def test_the_help_of_fit_has_headings():
    lines = output("fit", "--help").splitlines()
    headings = [line for line in lines if line.endswith(":") and line[0] != " "]
    assert headings == [
        "Arguments:",
        "Options:",
        "Reading the table:",
        "Growing:",
        "Pruning:",
        "Weights, costs and probabilities:",
        "Ensembles:",
        "Engines, for tables larger than memory:",
        "The model file:",
    ]
    options = [line.split()[0] for line in lines if line.startswith("  -")]
    assert len(options) == len(set(options)) == 92


def test_bad_usage(tmp_path):
    assert "Missing option '--target'" in usage_error("fit", WEATHER)
    assert "No such command 'grow'" in usage_error("grow")
    assert "--max-depth" in usage_error("fit", WEATHER, "-t", "play", "--max-depth=-1")
    assert "--min-gain" in usage_error("fit", WEATHER, "-t", "play", "--min-gain=-1")
    assert "--criterion" in usage_error("fit", WEATHER, "-t", "play", "--criterion=x")
    assert "--format" in usage_error("show", tmp_path, "--format=xml")
    assert run()[0] == 2


def test_main_is_the_entry_point(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["whatever", "--version"])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"branchwise {__version__}\n"


def test_help_loads_neither_pyarrow_nor_scikit_learn(start):
    code = (
        "import sys, atexit\n"
        "heavy = ('pyarrow', 'sklearn', 'rich')\n"
        "atexit.register(lambda: print([n for n in heavy if n in sys.modules]))\n"
        "from branchwise.cli.main import main; main()"
    )
    out, _ = start("--help", code=code).communicate()
    assert out.decode().splitlines()[-1] == "[]"


# fit


def test_fit_writes_the_model_that_the_library_fits(tmp_path):
    path = tmp_path / "tree.json"
    code, out, err = run("fit", WEATHER, "--target", "play", "-o", path)
    assert (code, out) == (0, "")
    assert err == (
        f"note: tree of 8 nodes (5 leaves, depth 2) from 14 rows written to {path}.\n"
    )
    data = datasets.load("weather")
    assert load(path) == fit_tree(data.X, data.y, C45, target_name="play")
    output("fit", WEATHER, "--target", "play", "-a", "id3", "-o", path)
    assert load(path) == fit_tree(data.X, data.y, ID3, target_name="play")


def test_fit_without_output_prints_the_tree():
    code, out, err = run("fit", TENNIS, "-t", "play tennis")
    assert code == 0
    assert out == (
        "outlook = cloudy: yes (4)\n"
        "outlook = rainy:\n"
        "|   wind = strong: no (2)\n"
        "|   wind = weak: yes (3)\n"
        "outlook = sunny:\n"
        "|   humidity = high: no (3)\n"
        "|   humidity = normal: yes (2)\n"
    )
    assert err.endswith("from 14 rows; -o FILE writes it to a model file.\n")
    assert run("fit", TENNIS, "-t", "play tennis", "--quiet") == (0, out, "")


def test_fit_to_standard_output_gives_the_model_file():
    code, out, err = run("fit", TENNIS, "-t", "play tennis", "-o", "-")
    assert code == 0
    assert json.loads(out)["format"] == "branchwise-model"
    assert err.endswith("written to standard output.\n")
    assert output("show", "-", stdin=out).startswith("outlook = cloudy: yes (4)\n")


def test_fit_as_json():
    document = json.loads(output("fit", TENNIS, "-t", "play tennis", "--format=json"))
    assert (document["nodes"], document["leaves"], document["depth"]) == (8, 5, 2)


def test_fit_from_standard_input():
    text = Path(WEATHER).read_text()
    expected = output("fit", WEATHER, "-t", "play")
    assert output("fit", "-", "-t", "play", stdin=text) == expected
    tabs = text.replace(",", "\t")
    assert output("fit", "-", "-t", "play", stdin=tabs) == expected


@pytest.fixture
def fitted(monkeypatch):
    """Fit a table, and return the very model that comes of it."""
    models = []

    def keep(*arguments, **named):
        models.append(fit_tree(*arguments, **named))
        return models[-1]

    def fit(table, *options, target=None):
        if table in datasets.names():
            target = datasets.load(table).target
            table = datasets.path(table)
        monkeypatch.setattr(fit_module, "fit_tree", keep)
        output("fit", table, "--target", target, "-o", os.devnull, *options)
        return models.pop()

    return fit


OPTIONS = [
    ("id3", "--criterion=gain_ratio", {"criterion": "gain_ratio"}),
    ("id3", "--criterion=gini --max-depth=1", {"criterion": "gini", "max_depth": 1}),
    ("id3", "--min-samples-split=10", {"min_samples_split": 10}),
    ("id3", "--min-samples-leaf=0.2", {"min_samples_leaf": 0.2}),
    ("id3", "--min-gain=0.3", {"min_gain": 0.3}),
    ("id3", "--missing-policy=split", {"missing": "split"}),
    ("id3", "--unseen-policy=largest", {"unseen": "largest"}),
    ("id3", "--class-weight=balanced", {"class_weight": "balanced"}),
    ("id3", "--class-weight=good=2,bad=.5", {"class_weight": {"good": 2, "bad": 0.5}}),
    ("id3", "--class-weight=good=3", {"class_weight": {"good": 3}}),
    ("id3", "--n-jobs=2", {"n_jobs": 2}),
    ("id3", "--max-bins=4", {"max_bins": 4}),
    ("id3", "--max-leaf-nodes=3", {"max_leaf_nodes": 3}),
    ("id3", "--max-p-value=0.2", {"max_p_value": 0.2}),
    ("cart", "--min-weight-fraction-leaf=0.1", {"min_weight_fraction_leaf": 0.1}),
    ("id3", "--priors=good=1,bad=9", {"priors": {"good": 1, "bad": 9}}),
    (
        "id3",
        "--weight=w --priors=good=1,bad=9 --class-weight=bad=7",
        {"priors": {"good": 1, "bad": 9}, "class_weight": {"bad": 7}},
    ),
    ("id3", "--costs=good:bad=4 --max-depth=1", {"costs": [[0, 1], [4, 0]]}),
    ("id3", "--probabilities=laplace", {"probabilities": "laplace"}),
    (
        "id3",
        "--probabilities=m-estimate --m=5",
        {"probabilities": "m-estimate", "m": 5},
    ),
    ("id3", "--pruning=none", {}),
    ("id3", "--pruning=error-based", {"pruning": "error-based"}),
    (
        "id3",
        "--pruning=error-based --confidence=0.01 --no-raise-subtrees",
        {"pruning": "error-based", "confidence": 0.01, "raise_subtrees": False},
    ),
    (
        "id3",
        "--pruning=cost-complexity --ccp-alpha=0.05",
        {"pruning": "cost-complexity", "ccp_alpha": 0.05},
    ),
    (
        "id3",
        "--pruning=reduced-error --validation-fraction=0.3 --tolerance=0.01",
        {"pruning": "reduced-error", "validation_fraction": 0.3, "tolerance": 0.01},
    ),
    ("c4.5", "", {}),
    ("c4.5", "--confidence=0.1", {"confidence": 0.1}),
    ("c4.5", "--no-prune", {"prune": False}),
    ("c4.5", "--no-raise-subtrees", {"raise_subtrees": False}),
    ("c4.5", "--min-samples-branch=5", {"min_samples_branch": 5}),
    ("c4.5", "--group-values", {"group_values": True}),
    ("c4.5", "--threshold=midpoint", {"threshold": "midpoint"}),
    ("c4.5", "--min-samples-leaf=3", {"min_samples_leaf": 3}),
    ("cart", "", {}),
    ("cart", "--criterion=log_loss", {"criterion": "log_loss"}),
    ("cart", "--criterion=entropy", {"criterion": "entropy"}),
    ("cart", "--ccp-alpha=0.05", {"ccp_alpha": 0.05}),
    ("cart", "--ccp-alpha=0", {"ccp_alpha": 0.0}),
    ("cart", "--ccp-alpha=1-se", {"ccp_alpha": "1-se"}),
]


@pytest.mark.parametrize(("algorithm", "options", "parameters"), OPTIONS)
def test_options_do_what_parameters_do(fitted, write, algorithm, options, parameters):
    data = datasets.load("labor")
    if "--max-depth" in options:
        parameters = {"max_depth": 1, **parameters}
    weights = np.arange(len(data.y)) % 3 if "--weight" in options else None
    table, target = _with_weights("labor", write)
    ignored = [] if "--weight" in options else ["--ignore=w"]
    estimator = ESTIMATORS[algorithm](**parameters).fit(data.X, data.y, weights)
    model = fitted(
        table, f"--algorithm={algorithm}", *options.split(), *ignored, target=target
    )
    assert model.recipe == estimator.model_.recipe
    assert model.tree == estimator.model_.tree
    plain = ESTIMATORS[algorithm]().fit(data.X, data.y).model_
    changes = model.tree != plain.tree or model.recipe != plain.recipe
    same = ("", "--n-jobs=2", "--pruning=none", "--ccp-alpha=0")
    assert changes is (options not in same)


def _with_weights(name, write):
    head, *rows = Path(datasets.path(name)).read_text().splitlines()
    weighted = [f"{row},{at % 3}" for at, row in enumerate(rows)]
    path = write("\n".join([f"{head},w", *weighted]) + "\n")
    return path, datasets.load(name).target


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        ("", {}),
        ("--criterion=squared_error --max-depth=3", {"max_depth": 3}),
        ("--criterion=poisson", {"criterion": "poisson"}),
        ("--ccp-alpha=0.02", {"ccp_alpha": 0.02}),
        ("--min-samples-leaf=0.1", {"min_samples_leaf": 0.1}),
        (
            "--pruning=reduced-error --validation-fraction=0.25",
            {"pruning": "reduced-error", "validation_fraction": 0.25},
        ),
    ],
)
def test_numbers_are_predicted_as_the_estimator_does(fitted, options, parameters):
    data = datasets.load("iris")
    numbers = data.X["petalwidth"]
    rest = {name: data.X[name] for name in data.X if name != "petalwidth"}
    estimator = CARTRegressor(**parameters).fit({**rest, "class": data.y}, numbers)
    model = fitted(
        datasets.path("iris"),
        "--algorithm=cart",
        "--regression",
        *options.split(),
        target="petalwidth",
    )
    assert model.recipe == estimator.model_.recipe
    assert model.tree == estimator.model_.tree


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            "-a id3 --group-values",
            (
                "--group-values applies only to --algorithm c4.5. Got id3: choose "
                "another algorithm, or leave the option out."
            ),
        ),
        ("-a forest --threshold=value", "--threshold applies only to --algorithm id3"),
        (
            "-a c4.5 --criterion=gini",
            "applies only to --algorithm id3 or cart or cart --regression. Got c4.5",
        ),
        (
            "-a c4.5 --no-prune --pruning=error-based",
            "--no-prune and --pruning contradict each other. Give one of them.",
        ),
        (
            "-a c4.5 --tolerance=0",
            "--tolerance has no effect unless --pruning is reduced-error.",
        ),
        (
            "-a cart --regression --class-weight=balanced",
            (
                "--class-weight applies only to --algorithm id3 or c4.5 or cart. Got "
                "cart --regression"
            ),
        ),
        ("-a cart --regression --no-raise-subtrees", "--no-raise-subtrees applies"),
        ("-a id3 --no-prune", "--no-prune applies only to --algorithm c4.5. Got id3"),
        (
            "-a id3 --regression",
            (
                "--regression applies only to --algorithm cart, forest or gradient. "
                "Got id3: give one of them, too."
            ),
        ),
        (
            "-a id3 --criterion=variance",
            (
                "--criterion must be one of gain, gain_ratio, gini, entropy, log_loss "
                "with --algorithm id3. Got variance."
            ),
        ),
        (
            "-a cart --criterion=variance",
            "--criterion must be one of gini, gain, entropy, log_loss with --algor",
        ),
        (
            "-a id3 --confidence=0.25",
            "--confidence has no effect unless --pruning is error-based. Got none.",
        ),
        (
            "-a c4.5 --no-prune --confidence=0.25",
            "unless --pruning is error-based. Got --no-prune.",
        ),
        (
            "-a cart --pruning=none --ccp-alpha=0",
            "--ccp-alpha has no effect unless --pruning is cost-complexity. Got none.",
        ),
        ("-a id3 --ccp-alpha=1", "unless --pruning is cost-complexity. Got none."),
        ("--validation=x.csv", "--validation has no effect unless --pruning is red"),
        (
            "--pruning=reduced-error",
            (
                "--pruning reduced-error needs rows to prune with: either --validation "
                "FILE or --validation-fraction SHARE. Got neither."
            ),
        ),
        (
            "--pruning=reduced-error --validation=x --validation-fraction=.2",
            "Got both.",
        ),
        (
            "--pruning=reduced-error --validation-fraction=1",
            "--validation-fraction must be a share between 0 and 1. Got 1.",
        ),
        (
            "-a cart --regression --pruning=error-based",
            "--pruning error-based counts wrong classes, which --regression has none",
        ),
        ("--m=3", "--m has no effect unless --probabilities is m-estimate."),
        ("-a c4.5 --confidence=0.6", "confidence must be a number above 0"),
        ("--costs=none.csv", "Got 'none.csv', and there is no such file."),
        ("--costs=yes:no=-1", "Got 'yes:no=-1'."),
        ("--costs=yes=1", "Got 'yes=1'."),
        (
            "--costs=yes:maybe=1",
            (
                "--costs has 'yes:maybe', which are not two classes with a colon "
                "between them. The classes are 'no', 'yes'."
            ),
        ),
        ("--costs=yes:yes=1", "with 0 where the prediction is right"),
        (
            "--priors=yes=1",
            (
                "--priors must be every class with its share, such as yes=0.1,no=0.9. "
                "Got none for 'no'."
            ),
        ),
        ("--priors=yes=0,no=0", "Got 0 for every class."),
        ("--priors=maybe=0,no=1", "--priors names the class 'maybe', which does not"),
        ("--priors=yes=x", "Got 'yes=x'."),
    ],
)
def test_options_that_do_not_go_together(options, message):
    line = refusal("fit", WEATHER, "-t", "play", *options.split(), code=2)
    assert message in line


def test_a_price_must_be_a_number_or_a_rule():
    message = usage_error(
        "fit", WEATHER, "-t", "play", "--algorithm=cart", "--ccp-alpha=2-se"
    )
    assert "--ccp-alpha must be a number, best or 1-se. Got '2-se'." in message


def test_the_price_that_cross_validation_chose_is_told(fitted):
    iris = ["fit", datasets.path("iris"), "-t", "class", "-a", "cart"]
    model = fitted("iris", "--algorithm=cart", "--ccp-alpha=1-se")
    err = run(*iris, "--ccp-alpha=1-se")[2]
    assert f"chose --ccp-alpha {model.recipe.ccp_alpha} --risk errors.\n" in err
    assert "chose" not in run(*iris, "--ccp-alpha=0.1")[2]


def test_the_way_that_cross_validation_chose_is_told():
    car = ["fit", datasets.path("car"), "-t", "class", "-a", "c4.5", "--group-values"]
    err = run(*car, "--cross-validate")[2]
    assert "cross-validation chose two-way splits, cost-complexity pruning.\n" in err
    err = run(*car, "--cross-validate", "--no-prune")[2]
    assert "cross-validation chose two-way splits, not pruned.\n" in err


def test_costs_from_a_file(fitted, write):
    expected = fitted("weather", "--costs=yes:no=5,no:yes=2", "--max-depth=1")
    path = write("truth;yes;no\nno;2;0\nyes;0;5\n", "costs.csv")
    model = fitted("weather", f"--costs={path}", "--max-depth=1")
    assert model.recipe.costs == ((0.0, 2.0), (5.0, 0.0))
    assert model.tree == expected.tree
    fit = ["fit", WEATHER, "-t", "play"]
    wrong = write("truth,yes,no\nno,1,0\nno,0,5\n", "wrong.csv")
    assert refusal(*fit, f"--costs={wrong}") == (
        f"{wrong} must have each of the classes 'no', 'yes' once as its rows, in "
        "column 'truth'. Got 'no', 'no'."
    )
    wrong = write("truth,yes,maybe\nno,1,0\nyes,0,5\n", "wrong.csv")
    assert "as its columns. Got 'yes', 'maybe'." in refusal(*fit, f"--costs={wrong}")
    for cell, got in (("-2", "-2"), ("", "none")):
        wrong = write(f"truth,yes,no\nno,1,0\nyes,0,{cell}\n", "wrong.csv")
        assert f"Got {got} in line 3." in refusal(*fit, f"--costs={wrong}")


def test_costs_of_classes_with_odd_names(fitted, write):
    path = write('a,y\n1,p:q\n2,p\n3,"q,r"\n')
    model = fitted(path, '--costs=p:q:p=3,"p:q,r=7"', target="y")
    assert model.schema.classes == ("p", "p:q", "q,r")
    assert model.recipe.costs == ((0, 1, 7), (3, 0, 1), (1, 1, 0))


def test_costs_change_the_answers(write):
    path = write("a,y\nx,sick\nx,well\nx,well\n")
    assert output("fit", path, "-t", "y", "-q") == "well (3/1)\n"
    costly = output("fit", path, "-t", "y", "-q", "--costs=sick:well=5")
    assert costly == "sick (3/2, decided by costs)\n"


def test_rows_to_prune_with_from_a_file(fitted, write):
    # As in the training table, doors are text, though they look like numbers here.
    rows = [line.split(",") for line in Path(datasets.path("car")).read_text().split()]
    doors = rows[0].index("doors")
    aside = [row for row in rows[1:] if row[doors] != "5more"][::3]
    path = write("\n".join(map(",".join, [rows[0], *aside])), "aside.csv")
    model = fitted("car", "--pruning=reduced-error", f"--validation={path}")
    data = datasets.load("car")
    columns = dict(zip(rows[0], zip(*aside, strict=True), strict=True))
    y = columns.pop(data.target)
    expected = ID3Classifier(pruning="reduced-error").fit(
        data.X, data.y, validation=({n: list(c) for n, c in columns.items()}, list(y))
    )
    assert model.tree == expected.tree_
    assert len(model.tree) < len(fitted("car").tree)


def test_rows_to_prune_with_that_are_not_right(write):
    fit = ["fit", WEATHER, "-t", "play", "--pruning=reduced-error", "--validation"]
    head = "outlook,temperature,humidity,windy,play\n"
    other = write("outlook,humidity,windy,play\nsunny,1,TRUE,no\n", "other.csv")
    assert refusal(*fit, other).startswith(
        f"{other} lacks the column 'temperature' that the other table has. Its columns "
    )
    other = write(head + "sunny,1,2,TRUE,maybe\n", "other.csv")
    assert refusal(*fit, other) == (
        f"{other} has classes that 'play' does not have in the training table: "
        "'maybe'. Take these rows out."
    )
    other = write(head + "sunny,1,2,TRUE,?\n", "other.csv")
    assert f"missing in 1 row of {other}, first in line 2" in refusal(*fit, other)
    other = write(head, "other.csv")
    assert f"{other} has a header but no rows" in refusal(*fit, other)
    assert "There is no file" in refusal(*fit, "gone.csv")
    text = Path(WEATHER).read_text()
    fit[1] = "-"
    assert "TABLE and --validation are both -" in refusal(*fit, "-", code=2, stdin=text)
    strict = "--unseen-policy=error"
    other = write(head + "snow,1,2,TRUE,no\n", "other.csv")
    fit[1] = WEATHER
    # It is row 0 of the other file, so no line of the training table is named.
    assert "(Row 0 is line" not in refusal(*fit, other, strict)


def test_numbers_as_the_target(write):
    path = write("a,y\n1,0.5\n2,high\n3,?\n")
    fit = ["fit", path, "-t", "y", "-a", "cart", "--regression"]
    assert "Column 'y' must hold numbers, but line 3" in refusal(*fit)
    assert refusal(*fit, "--missing=high", "--missing=?") == (
        f"The target 'y' is missing in 2 rows of {path}, first in line 3. Every row "
        "needs a number: fill it in or take the row out."
    )
    assert "either as text or as numbers" in refusal(*fit, "--categorical=y", code=2)


def test_a_note_on_many_numbers_as_classes(write):
    def note(n):
        path = write("a,y\n" + "".join(f"{k},{k}\n" for k in range(n)))
        return "is taken for a class" in run("fit", path, "-t", "y")[2]

    assert note(50)
    assert not note(49)


def test_categorical_columns_keep_their_text(write):
    path = write("zip,y\n007,a\n010,b\n007,a\n")
    fit = ["fit", path, "-t", "y", "-a", "id3", "-q"]
    assert output(*fit, "--categorical", "zip") == (
        "zip = 007: a (2)\nzip = 010: b (1)\n"
    )
    assert output(*fit) == "zip <= 8: a (2)\nzip >= 9: b (1)\n"
    both = ["--categorical", "all", "--numeric", "zip"]
    assert output(*fit, *both).startswith("zip <= 8:")
    assert output(*fit, "--categorical=all").startswith("zip = 007")


def test_columns_may_be_named_one_by_one_or_in_a_list(write):
    path = write('a,b,"c,d",y\n1,2,3,x\n4,5,6,z\n')
    fit = ["fit", path, "-t", "y", "-a", "id3", "-q"]
    assert output(*fit, "--ignore=a,b") == "c,d <= 4: x (1)\nc,d >= 5: z (1)\n"
    assert output(*fit, "--ignore=a", "--ignore=c,d") == (
        "b <= 3: x (1)\nb >= 4: z (1)\n"
    )
    assert "has no column 'q'" in refusal("fit", path, "-t", "y", "--ignore=a,q")


def test_missing_marks(write):
    path = write("n,y\n1,a\nNA,b\n?,b\n,b\n3,a\n")
    fit = ["fit", path, "-t", "y", "-a", "id3", "-q"]
    text = output(*fit, "--missing", "NA", "--missing", "?")
    assert text == "n <= 2: a (1)\nn >= 3: a (1)\nn is missing: b (3)\n"
    # A mark takes the place of the question mark, never of the empty cell.
    document = json.loads(output("schema", path, "--missing=NA", "--format=json"))
    assert document["columns"][0]["values"] == ["1", "3", "?"]
    assert document["columns"][0]["missing"] == 2


def test_declared_categories():
    toy = datasets.path("toy")
    options = [f"--categories={n}={','.join(v)}" for n, v in _domains().items()]
    expected = fit_tree(
        datasets.load("toy").X, datasets.load("toy").y, categories=_domains()
    )
    assert output("fit", toy, "-t", "class", "-a", "id3", *options, "-q") == (
        expected.to_text() + "\n"
    )


def _domains():
    return datasets.load("toy").categories


def test_declared_categories_with_odd_names_and_values(write):
    path = write('a=b,y\n"1,2",x\n3,z\n')
    text = output("fit", path, "-ty", "-aid3", "-q", '--categories=a=b=3,"1,2",4')
    assert text == "a=b = 3: z (1)\na=b = 1,2: x (1)\n"


def test_weights(write):
    path = write("a,w,y\nx,5,no\nx,1,yes\nz,0,maybe\n")
    assert output("fit", path, "-t", "y", "--weight=w", "-q") == (
        "no (2/1, 83.3 % of weight)\n"
    )


def test_classes_may_be_numbers(write, tmp_path):
    path = write("a,y\nx,0\nz,1\n")
    tree = tmp_path / "tree.json"
    output("fit", path, "-t", "y", "-a", "id3", "-o", tree)
    assert load(tree).schema.classes == (0, 1)
    assert output("predict", tree, path) == "prediction\n0\n1\n"
    assert "accuracy 1.0000 (2 of 2 rows)" in output("evaluate", tree, path)
    output("fit", path, "-t", "y", "-o", tree, "--categorical", "y")
    assert load(tree).schema.classes == ("0", "1")


def test_notes_on_columns_without_use(write):
    rows = "".join(f"id{n},,{n % 2},\n" for n in range(12))
    path = write("id,void,y,gone\n" + rows)
    err = run("fit", path, "-t", "y")[2]
    assert "note: no row has a value in columns 'void', 'gone'.\n" in err
    assert (
        "note: column 'id' looks like an identifier: every row has a different "
        "value. A tree would split on it, but new rows have other "
        "values: leave it out with --ignore id.\n" in err
    )
    assert run("fit", path, "-t", "y", "--quiet")[2] == ""


def test_a_note_on_words_among_numbers(write):
    path = write("n,m,y\n1,2,a\n2,more,b\nn/a,4,b\n")
    assert run("fit", path, "-t", "y")[2].splitlines()[0] == (
        "note: column 'n' is taken for text because of 'n/a'; it is numeric with "
        "--missing n/a."
    )
    for correction in ("--missing=n/a", "--categorical=n"):
        assert "because of" not in run("fit", path, "-t", "y", correction)[2]


def test_a_fit_that_cannot_be(write, tmp_path):
    path = write("a,w,y\nx,1,no\nx,-1,\nz,?,maybe\n")
    assert refusal("fit", path, "-t", "why") == (
        f"{path} has no column 'why'. The columns are 'a', 'w', 'y'."
    )
    assert "Did you mean 'play'?" in refusal("fit", WEATHER, "-t", "Plya")
    assert refusal("fit", path, "-t", "y") == (
        f"The target 'y' is missing in 1 row of {path}, first in line 3. Every row "
        "needs a class: fill it in or take the row out."
    )
    assert refusal("fit", path, "-t", "a", "--weight", "w") == (
        "Column 'w' must hold weights: finite numbers that are not negative. Got -1.0 "
        f"in line 3 of {path}."
    )
    assert "Got none in line 4" in refusal(
        "fit", write("w,a,y\n1,1,1\n2,2,2\n,3,3\n"), "-t", "y", "--weight", "w"
    )
    assert "holds only weights of 0" in refusal(
        "fit", write("w,a,y\n0,1,1\n0,2,2\n"), "-t", "y", "--weight", "w"
    )
    assert "both the target and the weight" in refusal(
        "fit", path, "-t", "y", "--weight", "y"
    )
    assert "named by --target and by --ignore" in refusal(
        "fit", path, "-t", "y", "--ignore", "y"
    )
    assert "no attributes: besides the target 'y'" in refusal(
        "fit", write("y\n1\n"), "-t", "y"
    )
    assert "has a header but no rows" in refusal("fit", write("a,y\n"), "-t", "y")
    assert refusal("fit", datasets.path("iris"), "-t", "petalwidth").endswith(
        "Put such numbers into classes, take them as names with --categorical "
        "petalwidth, or predict the numbers themselves with --algorithm cart "
        "--regression."
    )
    assert "Column 'a' must hold numbers, but line 2" in refusal(
        "fit", write("a,y\nx,1\n"), "-t", "y", "--numeric", "a"
    )
    assert not list(tmp_path.glob("*.json"))


def test_errors_of_the_library_tell_the_line(write):
    path = write('a,b,y\n"x\ny",1,1\nz,?,2\n')
    assert refusal("fit", path, "-t", "y", "--missing-policy=error").endswith(
        f"(Row 1 is line 4 of {path}.)"
    )
    infinite = write("a,y\n1,1\ninf,2\n")
    assert "(Row 1 is line 3 of" in refusal("fit", infinite, "-t", "y")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--categories=outlook"], "--categories must be a column, = and its values"),
        (
            ["--categories=windy=TRUE,FALSE", "--categories=windy=x"],
            "--categories names 'windy' twice",
        ),
        (["--class-weight=yes"], "--class-weight must be 'balanced' or classes"),
        (["--class-weight=yes=-1"], "Got 'yes=-1'"),
        (["--class-weight=yes=x"], "Got 'yes=x'"),
        (["--class-weight=maybe=1"], "The classes are 'no', 'yes'."),
        (["--class-weight=yes=0,no=0"], "gives 0 to every class"),
        (["--categorical=windy", "--numeric=windy"], "either as text or as numbers"),
        (["--min-samples-leaf=1.5"], "min_samples_leaf must be a whole number"),
        (["--n-jobs=0"], "n_jobs must be"),
        (["--min-samples-split=1"], "min_samples_split must be a whole number"),
    ],
)
def test_values_of_options_that_are_not_allowed(options, message):
    assert message in refusal("fit", WEATHER, "-t", "play", *options, code=2)


def test_a_number_of_samples_must_be_a_number():
    message = usage_error("fit", WEATHER, "-t", "play", "--min-samples-leaf=many")
    assert "--min-samples-leaf must be a whole number or a share" in message


def test_unknown_columns_in_options_are_bad_data():
    fit = ["fit", WEATHER, "-t", "play"]
    assert "no column 'wind'. Did you mean 'windy'?" in refusal(*fit, "--ignore=wind")
    assert "no column 'x'" in refusal(*fit, "--categories=x=1")
    assert "no column 'x'" in refusal(*fit, "--weight=x")


# predict


def rows_of(text, delimiter=","):
    return list(csv.reader(io.StringIO(text), delimiter=delimiter))


def test_predict_writes_a_csv_file(model, tmp_path):
    out = tmp_path / "out.csv"
    code, stdout, err = run("predict", model("weather"), WEATHER, "-o", out)
    assert (code, stdout) == (0, "")
    assert err == f"note: 14 rows written to {out}.\n"
    assert rows_of(out.read_text()) == [
        ["prediction"],
        *([label] for label in datasets.load("weather").y),
    ]


def test_predict_with_probabilities_and_the_columns_of_the_table(model, write):
    tree = model("toy")
    new = write('note,color,size,shape\n"a, b",y,s,r\n?,?,l,i\n')
    header, first, second = rows_of(output("predict", tree, new, "--proba", "--keep"))
    assert header == [
        *("note", "color", "size", "shape", "prediction"),
        *("probability of +", "probability of -"),
    ]
    assert first[:5] == ["a, b", "y", "s", "r", "+"]
    assert [float(cell) for cell in first[5:]] == [0.8, 0.2]
    assert second[:4] == ["?", "?", "l", "i"]


def test_predict_as_json(model, write):
    new = write("outlook,temperature,humidity,windy\nsunny,80,90,TRUE\n")
    tree = model("weather")
    assert json.loads(output("predict", tree, new, "--format=json", "--proba")) == [
        {"prediction": "no", "probability of no": 1.0, "probability of yes": 0.0}
    ]
    header = write("outlook,temperature,humidity,windy\n")
    assert json.loads(output("predict", tree, header, "--format=json")) == []
    assert output("predict", tree, header) == "prediction\n"


def test_predict_takes_the_format_from_the_name(model, tmp_path):
    tree = model("weather")
    for name in ("out.tsv", "out.json", "out.parquet", "out.txt"):
        output("predict", tree, WEATHER, "--keep", "-o", tmp_path / name)
    expected = rows_of(output("predict", tree, WEATHER, "--keep"))
    assert rows_of((tmp_path / "out.txt").read_text()) == expected
    assert rows_of((tmp_path / "out.tsv").read_text(), "\t") == expected
    as_json = json.loads((tmp_path / "out.json").read_text())
    table = parquet.read_table(tmp_path / "out.parquet")
    assert [list(row.values()) for row in as_json] == expected[1:]
    assert table.to_pylist() == as_json


def test_predict_refuses_names_of_forms_that_it_does_not_write(model, tmp_path):
    tree = model("weather")
    command = "predict", tree, WEATHER, "-o"
    for name, meant in (
        ("x.ODS", "a workbook other than .xlsx"),
        ("x.arff", "ARFF"),
        ("x.db", "SQLite"),
        ("x.duckdb", "DuckDB"),
        ("x.jsonl", "JSON lines"),
    ):
        said = refusal(*command, tmp_path / name, code=2)
        assert ".parquet, .arrow or .xlsx, the formats that predict writes." in said
        assert f"{name}', whose ending means {meant}. Use one of these endings" in said
        output(*command, tmp_path / name, "--format", "csv")
        assert (tmp_path / name).read_text().startswith("prediction\n")
    for name in ("x.csv.gz", "x.json.zst", "x.zip"):
        for options in ((), ("--format", "csv")):
            said = refusal(*command, tmp_path / name, *options, code=2)
            assert "means a compressed file. Give a name without that ending" in said
        assert not (tmp_path / name).exists()
    output(*command, tmp_path / "x.tab", "--keep")
    assert "\t" in (tmp_path / "x.tab").read_text()
    output(*command, tmp_path / "x.pq")
    assert parquet.read_table(tmp_path / "x.pq").column_names == ["prediction"]
    # Refused before any work: there is no such model.
    assert "other than .xlsx" in refusal("predict", "no", "no", "-o", "x.xls", code=2)


def test_predict_reads_columns_as_they_were_learnt(model, write):
    tree = model("car")  # doors are 2, 3, 4 and 5more
    new = write(
        "safety,doors,persons,lug_boot,maint,buying\n"
        "high,2,4,big,low,low\nhigh,4,2,big,low,low\n"
    )
    assert rows_of(output("predict", tree, new))[1:] == [["vgood"], ["unacc"]]
    text_in_numbers = write("outlook,temperature,humidity,windy\nsunny,80,high,TRUE\n")
    assert "Column 'humidity' must hold numbers, but line 2" in refusal(
        "predict", model("weather"), text_in_numbers
    )


def test_predict_from_a_model_of_booleans_and_number_names(tmp_path, write):
    columns = {"flag": [True, False, True], "code": [1, 2, 1]}
    fitted = fit_tree(columns, [True, False, True], categorical_features=["code"])
    fitted.save(tmp_path / "tree.json")
    new = write("flag,code,y\ntrue,1,TRUE\nFALSE,2,false\n,3,true\n")
    out = output("predict", tmp_path / "tree.json", new)
    assert out == "prediction\nTrue\nFalse\nTrue\n"
    report = output("evaluate", tmp_path / "tree.json", new, "--target", "y")
    assert report.startswith("accuracy 1.0000")


def test_predict_from_parquet(model, tmp_path):
    tree = model("weather")
    table = pa.table(
        {
            "outlook": ["sunny", None],
            "temperature": [80, 70],
            "humidity": [90.5, 60.0],
            "windy": [True, False],
        }
    )
    parquet.write_table(table, tmp_path / "new.parquet")
    expected = ["no", "yes"]
    out = rows_of(output("predict", tree, tmp_path / "new.parquet", "--keep"))
    assert [row[-1] for row in out[1:]] == expected
    assert out[1][:4] == ["sunny", "80", "90.5", "True"]


def test_predict_through_pipes(model):
    tree = model("weather")
    text = Path(WEATHER).read_text()
    expected = output("predict", tree, WEATHER)
    assert output("predict", tree, "-", stdin=text) == expected
    assert output("predict", "-", WEATHER, stdin=tree.read_text()) == expected
    assert output("predict", tree, "-", "-o", "-", stdin=text) == expected


def test_a_model_without_column_names_takes_columns_in_order(tmp_path, write):
    fitted = fit_tree(np.array([[1.0, 5.0], [2.0, 5.0]]), ["a", "b"])
    tree = tmp_path / "tree.json"
    fitted.save(tree)
    code, out, err = run("predict", tree, write("p,q\n1,5\n2,5\n"))
    assert (code, out) == (0, "prediction\na\nb\n")
    assert "are taken in their order" in err
    assert "has 3. Leave out the columns" in refusal(
        "predict", tree, write("p,q,r\n1,5,a\n")
    )
    labelled = write("p,q,r\n1,5,a\n")
    assert "accuracy 1.0000" in output("evaluate", tree, labelled, "-t", "r")
    assert "Name the column with the true classes with --target." in refusal(
        "evaluate", tree, labelled, code=2
    )
    named = run("predict", tree, write("x1,x0\n5,2\n"))
    assert named == (0, "prediction\nb\n", "")


def test_a_prediction_that_cannot_be(model, write, tmp_path):
    tree = model("weather")
    new = write("outlook,temperature,windy\nsunny,80,TRUE\n")
    assert refusal("predict", tree, new) == (
        f"{new} lacks the column 'humidity' that the tree splits on. Its "
        "columns are 'outlook', 'temperature', 'windy'; rename or add what is lacking, "
        "with empty cells if it is not known."
    )
    # The tree does not split on the temperature; what is there is not read.
    fewer = write("outlook,temperature,humidity,windy\nsunny,mild,95,TRUE\n")
    assert output("predict", tree, fewer) == "prediction\nno\n"
    fewer = write("outlook,humidity,windy,play\nsunny,95,TRUE,no\n")
    for engine in ("memory", "chunked"):
        assert output("predict", tree, fewer, "--engine", engine) == "prediction\nno\n"
    assert "accuracy 1.0000" in output("evaluate", tree, fewer)
    double = write("outlook,temperature,humidity,windy,prediction\nsunny,8,9,TRUE,x\n")
    assert "two columns 'prediction'" in refusal("predict", tree, double, "--keep")
    assert "Give the model first, then the table." in refusal("predict", WEATHER, tree)
    assert "are both -" in refusal("predict", "-", "-", code=2)
    assert "There is no model file" in refusal("predict", tmp_path / "no", WEATHER)
    assert "is a directory, not a model file" in refusal("show", tmp_path)
    strict = model("weather", "--unseen-policy=error")
    strange = write(
        "outlook,temperature,humidity,windy\nsunny,8,9,TRUE\nsnow,8,9,TRUE\n"
    )
    assert "(Row 1 is line 3 of" in refusal("predict", strict, strange)


# show


def test_show(model):
    tree = model("weather")
    fitted = load(tree)
    assert output("show", tree) == fitted.to_text() + "\n"
    assert output("show", tree, "--max-depth=1") == fitted.to_text(max_depth=1) + "\n"
    rules = output("show", tree, "--rules").splitlines()
    assert rules == [str(rule) for rule in fitted.rules()]


def test_show_empty_branches(model):
    tree = model("toy", "--categories=color=y,g,b")
    assert "color = b: " in output("show", tree, "--empty-branches")
    assert "color = b: " not in output("show", tree)


def test_show_as_json(model):
    document = json.loads(output("show", model("weather"), "--format=json"))
    assert document["schema"]["target"] == "play"
    assert document["schema"]["classes"] == ["no", "yes"]
    assert document["schema"]["columns"][:2] == [
        {
            "name": "outlook",
            "kind": "categorical",
            "values": ["overcast", "rainy", "sunny"],
            "has_missing": False,
            "known": 14,
            "missing": 0,
        },
        {
            "name": "temperature",
            "kind": "numeric",
            "has_missing": False,
            "known": 14,
            "missing": 0,
            "low": 64,
            "high": 85,
        },
    ]
    assert len(document["rules"]) == document["leaves"] == 5
    last = document["rules"][-1]
    assert last["conditions"] == [
        {"column": "outlook", "op": "=", "value": "sunny"},
        {"column": "humidity", "op": ">", "value": 80},
    ]
    assert (last["label"], last["cases"], last["node"]) == ("no", 3, 7)
    assert (document["predicts"], document["pruning"]) == ("classes", None)
    assert last["counts"] == [
        {"class": "no", "cases": 3.0},
        {"class": "yes", "cases": 0.0},
    ]


def test_show_nodes(model):
    tree = model("weather")
    assert output("show", tree, "--nodes", "--max-depth=1") == (
        "0  all cases: yes (14/5)\n"
        "1  outlook = overcast: yes (4)\n"
        "2  outlook = rainy: yes (5/2)\n"
        "3  outlook = sunny: no (5/2)\n"
    )
    assert "Give one of them" in refusal("show", tree, "--nodes", "--rules", code=2)


def test_show_needs_a_model(write):
    assert "is not a branchwise model" in refusal("show", write("{}", "tree.json"))
    assert "standard input is not a branchwise model" in refusal("show", "-", stdin="")


# evaluate


@pytest.fixture
def voters(tmp_path):
    path = tmp_path / "voters.json"
    output("fit", datasets.path("votes"), "-t", "votes", "-o", path)
    return path


def test_evaluate_agrees_with_scikit_learn(voters):
    from sklearn.metrics import accuracy_score, confusion_matrix, f1_score

    test = datasets.load("votes_test")
    predicted = load(voters).predict(test.X)
    text = output("evaluate", voters, datasets.path("votes_test"), "--format=json")
    document = json.loads(text)
    assert document["rows"] == len(test.y)
    assert document["accuracy"] == accuracy_score(test.y, predicted)
    assert document["macro_average"]["f1"] == f1_score(
        test.y, predicted, average="macro"
    )
    assert document["confusion_matrix"]["rows"] == (
        confusion_matrix(test.y, predicted).tolist()
    )
    assert document["confusion_matrix"]["true"] == sorted(set(test.y))


def test_evaluate_as_text(model, write):
    test = write(
        "outlook,temperature,humidity,windy,play\n"
        "overcast,80,80,TRUE,yes\nsunny,80,90,TRUE,yes\nsunny,80,90,TRUE,no\n"
    )
    code, out, err = run("evaluate", model("weather"), test)
    assert (code, err) == (0, "")
    assert out == (
        "accuracy 0.6667 (2 of 3 rows)\n"
        "\n"
        "score                value      95 % interval\n"
        "accuracy            0.6667   0.2077 to 0.9385\n"
        "balanced accuracy   0.7500   0.3250 to 1.0000\n"
        "log loss           12.0146  0.0000 to 35.5626\n"
        "AUC                 0.7500   0.5000 to 1.0000\n"
        "Brier score         0.3333   0.0000 to 0.9867\n"
        "calibration error   0.3333   0.0000 to 0.6750\n"
        "\n"
        "class         precision  recall  f1-score  rows\n"
        "no               0.5000  1.0000    0.6667     1\n"
        "yes              1.0000  0.5000    0.6667     2\n"
        "macro avg        0.7500  0.7500    0.6667     3\n"
        "weighted avg     0.8333  0.6667    0.6667     3\n"
        "\n"
        "confusion matrix: a row for each true class, a column for each predicted "
        "one\n"
        "\n"
        "     no  yes\n"
        "no    1    0\n"
        "yes   1    1\n"
        "\n"
        "calibration: share of right predictions, by predicted probability\n"
        "\n"
        "probability  rows  mean probability   right\n"
        "0.9 to 1.0      3            1.0000  0.6667\n"
        "\n"
        "accuracy 0.6667; always predicting the most frequent class of these rows: "
        "0.6667.\n"
    )


def test_evaluate_with_classes_that_the_tree_does_not_know(model, write):
    test = write(
        "outlook,temperature,humidity,windy,result\n"
        "overcast,80,80,TRUE,yes\nsunny,80,90,TRUE,maybe\nsunny,80,90,TRUE,?\n"
    )
    tree = model("weather")
    code, out, err = run("evaluate", tree, test, "--target", "result")
    assert code == 0
    assert out.startswith("accuracy 0.5000 (1 of 2 rows)\n")
    assert "maybe   1    0\n" in out
    assert err == (
        f"note: rows without a class in column 'result' are left out: 1 of 3 in {test}."
        f"\nnote: column 'result' of {test} has classes that the tree does not know "
        "and never predicts: 'maybe'. These rows count as errors: 1.\n"
    )
    text = output("evaluate", tree, test, "--target=result", "--format=json", "-q")
    document = json.loads(text)
    assert document["unknown_classes"] == ["maybe"]
    assert document["rows_without_class"] == 1
    assert document["confusion_matrix"] == {
        "true": ["no", "yes", "maybe"],
        "predicted": ["no", "yes"],
        "rows": [[0, 0], [0, 1], [1, 0]],
    }


def test_evaluate_numbers_against_words(write, tmp_path):
    tree = tmp_path / "tree.json"
    output("fit", write("a,y\nx,0\nz,1\n"), "-t", "y", "-o", tree)
    out = output("evaluate", tree, write("a,y\nx,0.0\nz,one\n"))
    assert out.startswith("accuracy 0.5000 (1 of 2 rows)")


def test_an_evaluation_that_cannot_be(model, write):
    tree = model("weather")
    assert "has no column 'play'" in refusal("evaluate", tree, TENNIS)
    header = "outlook,temperature,humidity,windy,play\n"
    for rows in ("", "sunny,1,1,TRUE,?\n"):
        assert "has no class in any row" in refusal(
            "evaluate", tree, write(header + rows)
        )


# Models that predict numbers


def _models_of_numbers_are_kept():
    fitted = CARTRegressor().fit({"x": [1, 2]}, [0.5, 1.5]).model_
    try:
        return load_bytes(fitted.to_bytes())[1] == fitted.tree
    except BranchwiseError:
        return False


@pytest.fixture
def numbers(fitted, monkeypatch):
    """Fit petal widths; every verb then opens that model, whatever it is told."""
    options = ["--algorithm=cart", "--regression", "--max-depth=2"]
    model = fitted(datasets.path("iris"), *options, target="petalwidth")
    for module in (predict_module, evaluate_module):
        monkeypatch.setattr(module, "open_any", lambda _: model)
    monkeypatch.setattr(prune_module, "open_model", lambda *_: model)
    return model


def test_predict_numbers(numbers):
    data = datasets.load("iris")
    expected = numbers.predict({**data.X, "class": data.y}).tolist()
    rows = rows_of(output("predict", "tree.json", datasets.path("iris")))
    assert [float(row[0]) for row in rows[1:]] == expected
    assert refusal(
        "predict", "tree.json", datasets.path("iris"), "--proba", code=2
    ) == (
        "--proba adds the probabilities of classes, and this model has none: it "
        "predicts numbers. Do without --proba."
    )


def test_evaluate_numbers(numbers):
    from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

    data = datasets.load("iris")
    true, predicted = data.X["petalwidth"], numbers.predict({**data.X, "class": data.y})
    path = datasets.path("iris")
    document = json.loads(output("evaluate", "tree.json", path, "--format=json"))
    assert {
        n for cells in document.pop("columns").values() for n in cells.values()
    } == {0}
    assert document == {
        "rows": 150,
        "rows_without_number": 0,
        "r2": pytest.approx(r2_score(true, predicted)),
        "mean_absolute_error": pytest.approx(mean_absolute_error(true, predicted)),
        "root_mean_squared_error": pytest.approx(
            root_mean_squared_error(true, predicted)
        ),
    }
    assert output("evaluate", "tree.json", path) == (
        f"R^2                      {document['r2']:.4f}\n"
        f"mean absolute error      {document['mean_absolute_error']:.5g}\n"
        f"root mean squared error  {document['root_mean_squared_error']:.5g}\n"
        "rows                     150\n"
    )


def test_evaluate_numbers_that_are_not_all_there(numbers, write):
    head = "sepallength,sepalwidth,petallength,class,petalwidth\n"
    row = "5,3,1,Iris-setosa,"
    test = write(f"{head}{row}1\n{row}\n{row}1\n")
    code, out, err = run("evaluate", "tree.json", test)
    assert code == 0
    assert out.startswith("R^2                      -\n")
    assert err == (
        "note: rows without a number in column 'petalwidth' are left out: 1 of 3 in "
        f"{test}.\nnote: column 'petalwidth' of {test} has the same number "
        "everywhere, so that R^2 is not defined.\n"
    )
    evaluate = ["evaluate", "tree.json"]
    assert "has no number in any row" in refusal(*evaluate, write(f"{head}{row}\n"))
    assert "is infinite in line 3" in refusal(
        *evaluate, write(f"{head}{row}1\n{row}inf\n")
    )
    assert "must hold numbers, but line 2" in refusal(
        *evaluate, write(f"{head}{row}wide\n")
    )


def test_numbers_through_files(tmp_path):
    tree = tmp_path / "tree.json"
    options = ["-t", "petalwidth", "-a", "cart", "--regression", "--max-depth", "1"]
    printed = output("fit", datasets.path("iris"), *options, "-q")
    output("fit", datasets.path("iris"), *options, "-o", tree)
    assert output("show", tree) == printed
    document = json.loads(output("show", tree, "--format=json"))
    assert document["predicts"] == "numbers"
    assert document["schema"]["classes"] == []
    rule = document["rules"][0]
    assert (rule["node"], rule["cases"]) == (1, 50)
    assert rule["mean"] == pytest.approx(0.244)
    assert rule["deviation"] == pytest.approx(0.1061, abs=1e-4)
    assert "R^2" in output("evaluate", tree, datasets.path("iris"))


# prune


class _Pruned:
    """Stands in for what models do when they are pruned, and notes the calls."""

    def __init__(self, monkeypatch):
        self.calls = []
        for name in ("prune", "collapse_nodes", "merge_same_leaves"):
            monkeypatch.setattr(Model, name, self._noting(name), raising=False)

    def _noting(self, name):
        def noted(model, *arguments, **named):
            self.calls.append((name, arguments, named))
            return fit_tree({"x": [1]}, ["yes"]) if name == "prune" else model

        return noted


@pytest.fixture
def pruned(monkeypatch):
    return _Pruned(monkeypatch)


@pytest.mark.parametrize(
    ("options", "calls"),
    [
        (
            "--method=error-based --confidence=0.1",
            [("prune", ("error-based",), {"confidence": 0.1, "raise_subtrees": False})],
        ),
        (
            "--method=cost-complexity --ccp-alpha=0.01",
            [("prune", ("cost-complexity",), {"ccp_alpha": 0.01})],
        ),
        ("--collapse=3 --collapse=1", [("collapse_nodes", (3, 1), {})]),
        ("--merge-same-leaves", [("merge_same_leaves", (False,), {})]),
        (
            "--merge-same-leaves --change-probabilities --collapse=1",
            [("collapse_nodes", (1,), {}), ("merge_same_leaves", (True,), {})],
        ),
    ],
)
def test_prune_without_data(model, pruned, options, calls):
    output("prune", model("weather"), *options.split(), "-o", os.devnull)
    done = [(n, a[:1] if n == "prune" else a, named) for n, a, named in pruned.calls]
    assert done == calls
    for name, arguments, _ in pruned.calls:
        assert name != "prune" or arguments[1:] == (None, None)


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        ("--method=reduced-error --tolerance=0.1", {"tolerance": 0.1}),
        ("--method=error-based", {}),
        ("--method=error-based --no-raise-subtrees", {"raise_subtrees": False}),
        ("--method=cost-complexity --ccp-alpha=1-se", {"ccp_alpha": "1-se"}),
    ],
)
def test_prune_with_data(model, pruned, options, parameters):
    output("prune", model("weather"), "--data", WEATHER, *options.split(), "-q")
    ((name, (_, X, y), given),) = pruned.calls
    assert name == "prune"
    assert given == parameters
    assert X.column_names == ["outlook", "temperature", "humidity", "windy"]
    assert y.tolist() == list(datasets.load("weather").y)


def test_rows_to_prune_a_model_with(model, pruned, write):
    tree = model("weather")
    head = "outlook,temperature,humidity,windy,result,w\n"
    data = write(f"{head}sunny,1,2,TRUE,no,1\nrainy,1,2,TRUE,,2\nrainy,,2,?,yes,3\n")
    prune = ["prune", tree, "--method=reduced-error", "--data", data]
    code, _, err = run(*prune, "--target=result", "--weight=w")
    assert code == 0
    assert err.startswith(
        "note: rows without a value in column 'result' are left out: 1 of 3 in "
        f"{data}.\nnote: tree of 1 node (1 leaf, depth 0) pruned from 8 nodes (5 "
        "leaves, depth 2); -o FILE writes it"
    )
    ((_, (_, X, y), given),) = pruned.calls
    assert X["outlook"].to_pylist() == ["sunny", "rainy"]
    assert y.tolist() == ["no", "yes"]
    assert given["sample_weight"].tolist() == [1, 3]
    assert "has no column 'play'" in refusal(*prune)
    assert "has no column 'v'" in refusal(*prune, "--target=result", "--weight=v")
    data = write(f"{head}sunny,1,2,TRUE,maybe,1\n")
    assert refusal(*prune, "--target=result") == (
        f"Column 'result' of {data} has classes that the tree does not know: 'maybe'. "
        "Take these rows out."
    )


def test_rows_of_numbers_to_prune_with(numbers, pruned):
    path = datasets.path("iris")
    output("prune", "tree.json", "--method=reduced-error", "--data", path, "-o", "-")
    ((_, (_, X, y), _),) = pruned.calls
    assert "class" in X.column_names
    assert y.tolist() == list(datasets.load("iris").X["petalwidth"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "No pruning was requested. Give --method, --collapse, --merge-same"),
        ("--path --collapse=1", "--path only prints a table"),
        ("--path -o x.json", "--path only prints a table"),
        ("--method=cost-complexity", "--method cost-complexity needs --ccp-alpha"),
        (
            "--method=reduced-error",
            "--method reduced-error needs rows to prune with, other than those",
        ),
        (
            "--method=cost-complexity --ccp-alpha=best",
            "--ccp-alpha best needs rows to prune with, other than those",
        ),
        (
            "--method=error-based --no-raise-subtrees",
            "--no-raise-subtrees has no effect without --data",
        ),
        (
            "--method=error-based --tolerance=0",
            "--tolerance has no effect unless --method is reduced-error. Got error-b",
        ),
        (
            "--collapse=1 --confidence=0.2",
            "unless --method is error-based. Got none.",
        ),
        (
            "--collapse=1 --data=x.csv",
            "--data has no effect unless --method is error-",
        ),
        (
            "--method=cost-complexity --ccp-alpha=1 --data=x.csv",
            "--data has no effect unless --method is error-based or reduced-error, ",
        ),
        ("--method=error-based --weight=w", "--weight has no effect without --method"),
        ("--path --data=x.csv --weight=w", "--weight has no effect without --method"),
        (
            "--collapse=1 --change-probabilities",
            "no effect without --merge-same-leaves",
        ),
    ],
)
def test_prunings_that_cannot_be(model, options, message):
    assert message in refusal("prune", model("weather"), *options.split(), code=2)


def test_prune_reads_one_thing_from_standard_input():
    prune = ["prune", "-", "--method=reduced-error", "--data", "-"]
    assert "MODEL and --data are both -" in refusal(*prune, code=2, stdin="")
    message = usage_error("prune", "-", "--method=cost-complexity", "--ccp-alpha=x")
    assert "--ccp-alpha must be a number, best or 1-se." in message


def test_the_pruning_path(model, monkeypatch):
    def path(_, X, y):
        errors = None if X is None else np.array([0.25, 0.5])
        return SimpleNamespace(
            alpha=np.array([0.0, 0.125]),
            n_leaves=np.array([1500, 1]),
            train_error=np.array([0.0, 1 / 3]),
            validation_error=errors,
        )

    monkeypatch.setattr(Model, "pruning_path", path, raising=False)
    tree = model("weather")
    assert output("prune", tree, "--path") == (
        "alpha  leaves  training error\n"
        "    0   1,500               0\n"
        "0.125       1        0.333333\n"
    )
    assert output("prune", tree, "--path", "--data", WEATHER) == (
        "alpha  leaves  training error  error on data\n"
        "    0   1,500               0           0.25\n"
        "0.125       1        0.333333            0.5\n"
    )
    last = json.loads(output("prune", tree, "--path", "--format=json"))[-1]
    assert last == {"alpha": 0.125, "n_leaves": 1, "train_error": 1 / 3}


@pytest.mark.parametrize(
    ("options", "method", "parameters"),
    [
        ("", "error-based", {"raise_subtrees": False}),
        ("--confidence=0.05 --data", "error-based", {"confidence": 0.05}),
        ("--data", "reduced-error", {}),
        ("--ccp-alpha=0.02", "cost-complexity", {"ccp_alpha": 0.02}),
        ("--ccp-alpha=best --data", "cost-complexity", {"ccp_alpha": "best"}),
    ],
)
def test_prune_does_what_the_library_does(write, tmp_path, options, method, parameters):
    head, *rows = Path(datasets.path("house_votes")).read_text().splitlines()
    grown = [row for at, row in enumerate(rows) if at % 3]
    train = write("\n".join([head, *grown]), "train.csv")
    other = write("\n".join([head, *rows[::3]]), "other.csv")
    tree, smaller = tmp_path / "tree.json", tmp_path / "smaller.json"
    target = datasets.load("house_votes").target
    output("fit", train, "-t", target, "-a", "id3", "-o", tree)
    data = train if method == "error-based" else other
    given = [part for part in options.split() if part != "--data"]
    known = ()
    if "--data" in options:
        given += ["--data", data]
        table = read_table(data)
        known = (table.drop_columns([target]), table[target])
    output("prune", tree, f"--method={method}", *given, "-o", smaller)
    expected = load(tree).prune(method, *known, **parameters)
    assert load(smaller) == expected
    assert len(expected.tree) < len(load(tree).tree)


def test_collapse_takes_the_numbers_that_show_tells(model):
    tree = model("weather")
    assert output("show", tree, "--nodes") == (
        "0  all cases: yes (14/5)\n"
        "1  outlook = overcast: yes (4)\n"
        "2  outlook = rainy: yes (5/2)\n"
        "4  |   windy = FALSE: yes (3)\n"
        "5  |   windy = TRUE: no (2)\n"
        "3  outlook = sunny: no (5/2)\n"
        "6  |   humidity <= 80: yes (2)\n"
        "7  |   humidity >= 81: no (3)\n"
    )
    assert output("prune", tree, "--collapse", "3", "-q") == (
        "outlook = overcast: yes (4)\n"
        "outlook = rainy:\n"
        "|   windy = FALSE: yes (3)\n"
        "|   windy = TRUE: no (2)\n"
        "outlook = sunny: no (5/2)\n"
    )
    for wrong in ("7", "8"):
        assert refusal("prune", tree, "--collapse", wrong, code=2)


def test_the_real_pruning_path(voters):
    tested = datasets.path("votes_test")
    rows = output("prune", voters, "--path", "--data", tested).splitlines()
    assert rows[0].split() == [
        "alpha",
        "leaves",
        "training",
        "error",
        "error",
        "on",
        "data",
    ]
    assert rows[-1].split()[1] == "1"
    assert len(rows) > 3


# schema


def test_schema(write):
    rows = "".join(
        f"u{n},{n % 3},00{n},{n / 4},{'?' if n == 3 else 'a b'[n % 2]},"
        f"{'NA' if n == 5 else n},,k\n"
        for n in range(12)
    )
    path = write("id,code,zip,size,word,count,void,same\n" + rows)
    code, out, err = run("schema", path)
    assert code == 0
    described, warnings = out.split("\n\n")
    lines = {line.split()[0]: " ".join(line.split()) for line in described.splitlines()}
    assert [line.split()[:3] for line in warnings.splitlines()] == [
        ["warning:", "column", "'id'"],
        ["warning:", "column", "'void'"],
        ["warning:", "column", "'same'"],
        ["warning:", "columns", "'zip'"],
    ]
    assert lines == {
        "column": "column kind values missing hint",
        "id": "id categorical 12: u0, u1, u10, u11, u2, ... (7 more) 0 another value "
        "in every row: --ignore id?",
        "code": "code numeric 0 to 2 0 --categorical code if these numbers are names",
        "zip": "zip numeric 0 to 11 0 --categorical zip keeps zeros in front, as in "
        "000",
        "size": "size numeric 0 to 2.75 0",
        "word": "word categorical 2: ' ', a 1 --missing ' ' if that is no value",
        "count": "count categorical 12: 0, 1, 10, 11, 2, ... (7 more) 0 numeric with "
        "--missing NA",
        "void": "void categorical 12 no value at all: --ignore void",
        "same": "same categorical 1: k 0 one value only",
    }
    assert err.startswith("note: 12 rows, 8 columns. --categorical COLUMN takes")
    assert run("schema", path, "--quiet") == (0, out, "")


def test_schema_finds_marks_among_numbers(write):
    path = write("count\n1\n1\nN/A\n2\n")
    assert "numeric with --missing N/A" in output("schema", path)
    assert "1 to 2" in output("schema", path, "--missing", "N/A")
    spaces = output("schema", write("a, b\nx, ?\ny , u\n"))
    assert "' b'    categorical  2: ' ?', ' u'        0  --missing ' ?'" in spaces
    assert "spaces around some values are part of them" in spaces


@pytest.mark.parametrize(
    ("cells", "range_", "said"),
    [
        (["-2,25", "1,0", "1,5"], "-2.25 to 1.5", "'-2,25' is -2.25"),
        (["1,100", "2,300,000.5", "7"], "7 to 2300000.5", "'2,300,000.5' is 2300000.5"),
        (["1.100,5", "2.300,5"], "1100.5 to 2300.5", "'1.100,5' is 1100.5"),
        (["1 100", "23 000"], "1100 to 23000", "'23 000' is 23000"),
        (["1,5%", "10%", "12,5 %"], "0.015 to 0.125", "'12,5 %' is 0.125"),
        (["$1,100.00", "$5", "(7)"], "-7 to 1100", "'$1,100.00' is 1100"),
        (["5 €", "6,50 €"], "5 to 6.5", "'6,50 €' is 6.5"),
    ],
)
def test_numbers_that_are_not_written_plainly(write, cells, range_, said):
    rows = [f"{cell};{at % 2}" for at, cell in enumerate(cells * 9)]
    path = write("\n".join(["a;y", *rows, ""]))
    table = output("schema", path).splitlines()
    assert table[1].split("  ")[-1] == said
    assert range_ in table[1]
    column = json.loads(output("schema", path, "--format", "json"))["columns"][0]
    assert column["kind"] == "numeric"
    assert column["written"]
    fit = "fit", path, "--target", "y", "-o", path.with_name("tree.json")
    note = f"1 text column is read as numbers: 'a' ({said}); --categorical COLUMN keeps"
    assert note in run(*fit)[2]
    assert "read as numbers" not in run(*fit, "--categorical", "a")[2]


def test_numbers_that_can_be_read_in_two_ways(write):
    rows = "".join(f'"1,{at:03}",{at % 2}\n' for at in range(40))
    path = write(f"a,y\n{rows}?,1\n")
    both = "'1,000' is 1000 with a comma between thousands or 1 with a decimal comma"
    assert f"ambiguous: {both}: --thousands , or --decimal ," in output("schema", path)
    fit = "fit", path, "--target", "y", "-o", path.with_name("tree.json")
    code, _, err = run(*fit)
    assert code == 1
    assert err == (
        f"error: Column 'a' of {path} can be read in two ways: {both}. Say which is "
        "meant: --thousands , or --decimal ,; or keep the text with --categorical a.\n"
    )
    assert "('1,000' is 1000)" in run(*fit, "--thousands", ",")[2]
    assert "('1,000' is 1)" in run(*fit, "--decimal", "comma")[2]
    assert run(*fit, "--decimal", ",", "--thousands", ",")[2].startswith(
        "error: --decimal and --thousands must be two different marks."
    )
    assert (
        "must be one of '.' (point), ',' (comma). Got ';'"
        in (run(*fit, "--decimal", ";")[2])
    )


def test_numbers_that_are_not_written_in_one_way(write):
    several = write("a;y\n" + "1,5%;u\n10%;v\n12.5 %;u\n" * 9)
    said = (
        "taken for names: its numbers are not all written in one way, such as '1,5%', "
        "'10%', '12.5 %'"
    )
    assert said in output("schema", several)
    fit = "fit", several, "--target", "y", "-o", several.with_name("tree.json")
    assert f"column 'a' is {said}." in run(*fit)[2]
    words = write("a;y\n" + "".join(f"{at},5 €;u\nk.A.;v\n" for at in range(20)))
    assert (
        "taken for text because of 'k.A.'; it is numeric with --missing 'k.A.'"
        in output("schema", words)
    )
    assert "0.5 to 19.5" in output("schema", words, "--missing", "k.A.")


@pytest.mark.parametrize(
    "cells",
    [
        ["x", "y", "z"],
        ["1.2.3", "1.2.4", "2.0.1"],
        ["192.168.100.200", "192.168.100.201", "10.0.0.1"],
        ["2020-01-02", "2020-01-03", "2020-01-04"],
        ["1,5", "2,5", "some", "words"],
        ["1,,5", "1,5,2", "12,34,5"],
        ["%", "$", "5-7"],
    ],
)
def test_words_are_not_taken_for_numbers(write, cells):
    path = write("\n".join(["a;y", *(f"{cell};u" for cell in cells * 5), ""]))
    assert "taken for names" not in output("schema", path)


def test_numbers_that_are_not_written_in_one_way_do_not_name_rows(write):
    rows = "".join(f'"1,{at:03} €",{at % 2}\n' for at in range(40))
    path = write(f"a,y\n{rows}?,1\n$5.5,1\n")
    assert "names rows" not in output("schema", path)
    assert "--ignore a" not in output("schema", path)
    _, _, err = run("fit", path, "--target", "y", "-o", path.with_name("tree.json"))
    assert "not all written in one way" in err
    assert "names rows" not in err


def test_schema_cuts_long_values(write):
    long = "words " * 100
    path = write(f"a,b\n{long}1,x\n{long}2,y\n")
    lines = output("schema", path).splitlines()
    assert max(map(len, lines)) < 200
    cut = "words words words words words words w..."
    assert f"2: {cut}, {cut}  " in lines[1]
    columns = json.loads(output("schema", path, "--format", "json"))["columns"]
    assert columns[0]["values"] == [f"{long}1", f"{long}2"]


def test_schema_with_corrections_as_json(write):
    path = write("zip,id,n\n007,1,5\n010,2,\n")
    text = output(
        "schema",
        path,
        "--categorical=zip",
        "--ignore=id",
        "--numeric=n",
        "--format=json",
    )
    assert json.loads(text) == {
        "file": str(path),
        "rows": 2,
        "columns": [
            {
                "name": "zip",
                "kind": "categorical",
                "values": ["007", "010"],
                "missing": 0,
                "hint": None,
            },
            {
                "name": "n",
                "kind": "numeric",
                "minimum": 5.0,
                "maximum": 5.0,
                "missing": 1,
                "hint": "--categorical n if these numbers are names",
            },
        ],
        "warnings": [],
    }


def test_schema_of_parquet(tmp_path):
    ordered = pa.DictionaryArray.from_arrays([1, 0], ["low", "high"], ordered=True)
    table = pa.table({"a": ordered, "b": [[1], [2]], "c": pa.nulls(2, pa.float64())})
    path = tmp_path / "data.parquet"
    parquet.write_table(table, path)
    out = output("schema", path).splitlines()
    assert out[1].split()[:4] == ["a", "ordinal", "2:", "low,"]
    assert out[2].endswith("cannot be used: --ignore b")
    assert out[3].endswith("no value at all: --ignore c")


@pytest.mark.parametrize("arrow_type", [pa.int64(), pa.uint64()])
def test_whole_numbers_beyond_what_is_exact(tmp_path, arrow_type):
    ids = pa.array([2**60 + at % 3 for at in range(12)], arrow_type)
    path = tmp_path / "data.parquet"
    parquet.write_table(pa.table({"big": ids, "y": ["u", "v", "w"] * 4}), path)
    _, out, err = run("schema", path)
    assert f"big     categorical  3: {2**60}, {2**60 + 1}, {2**60 + 2}" in out
    assert (
        "note: whole numbers beyond 2^53 are taken as names, for float64 does not hold "
        f"all their digits: column 'big' of {path}.\n" in err
    )
    for option in ("--categorical", "--ignore"):
        output("schema", path, option, "big")
    tree = tmp_path / "tree.json"
    output("fit", path, "--target", "y", "-o", tree)
    assert output("predict", tree, path).split()[1:4] == ["u", "v", "w"]


def test_a_blank_after_every_comma(write, tmp_path):
    path = write("a, b, play\nx, 1, no\ny, 2, yes\n")
    command = "fit", path, "--target", "play", "-o", tmp_path / "tree.json"
    said = refusal(*command)
    assert "--separator ', ' strips it around cells. The" in said
    output(*command, "--separator", ", ")


def test_words_in_place_of_numbers_are_not_called_missing(tmp_path):
    command = "fit", TENNIS, "--target", "play tennis", "-o", tmp_path / "tree.json"
    for options in (("-a", "cart", "--regression"), ("--weight", "wind")):
        said = refusal(*command, *options)
        assert "must hold numbers, but line 2 of" in said
        assert "and many cells are like it." in said
        assert "--missing" not in said


def test_schema_of_a_table_without_rows(write):
    assert len(output("schema", write("a,b\n")).splitlines()) == 3


# Streams, errors, exit codes


def test_places_that_cannot_be_written_to(tmp_path, monkeypatch):
    fit = ["fit", WEATHER, "-t", "play", "-o"]
    assert "is a directory. Give the name of a file" in refusal(*fit, tmp_path)
    assert "There is no directory" in refusal(*fit, tmp_path / "no" / "tree.json")
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert "allows no new files" in refusal(*fit, tmp_path / "tree.json")


def test_a_full_disk(tmp_path, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    target = tmp_path / "tree.json"
    message = refusal("fit", WEATHER, "-t", "play", "-o", target)
    assert message == f"{target}: No space left on device"
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full device")
def test_a_full_device_is_named():
    message = refusal("fit", WEATHER, "-t", "play", "-o", "/dev/full")
    assert message == "/dev/full: No space left on device"


def test_the_file_is_named_if_the_system_names_it(tmp_path, monkeypatch):
    def gone(*_, **__):
        raise FileNotFoundError(2, "No such file or directory", "/gone")

    monkeypatch.setattr(fit_module, "fit_tree", gone)
    message = refusal("fit", WEATHER, "-t", "play")
    assert message == "/gone: No such file or directory"


def test_too_little_memory(monkeypatch):
    def much(*_, **__):
        raise MemoryError

    monkeypatch.setattr(fit_module, "fit_tree", much)
    assert "out of memory" in refusal("fit", WEATHER, "-t", "play")


def test_an_interrupted_fit_leaves_the_old_file(tmp_path, monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    target = tmp_path / "tree.json"
    target.write_text("old")
    assert run("fit", WEATHER, "-t", "play", "-o", target)[::2] == (
        130,
        "interrupted\n",
    )
    assert [path.name for path in tmp_path.iterdir()] == ["tree.json"]
    assert target.read_text() == "old"


def test_a_link_stays_a_link(tmp_path):
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    link.symlink_to(real)
    output("fit", WEATHER, "-t", "play", "-o", link)
    assert link.is_symlink()
    assert load(real) == load(link)


def test_a_device_is_not_replaced():
    output("fit", WEATHER, "-t", "play", "-o", os.devnull)
    assert not Path(os.devnull).is_file()


def test_warnings_become_notes(monkeypatch):
    real = fit_module.fit_tree

    def warn(*args, **kwargs):
        warnings.warn("it is odd", BranchwiseWarning, stacklevel=1)
        return real(*args, **kwargs)

    monkeypatch.setattr(fit_module, "fit_tree", warn)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert "note: it is odd\n" in run("fit", WEATHER, "-t", "play")[2]


def test_messages_show_no_control_characters(write):
    path = write("a\x1b[31m,b\n1,2\n")
    assert "'a\\x1b[31m'" in refusal("fit", path, "-t", "c")


def test_nobody_reads_the_output(monkeypatch):
    def broken(*_):
        raise BrokenPipeError

    monkeypatch.setattr(main_module, "_silence_output", lambda: None)
    monkeypatch.setattr(results_module, "print_lines", broken)
    assert run("fit", WEATHER, "-t", "play", "-q") == (141, "", "")


class _Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


@pytest.mark.parametrize(("patience", "shows"), [(0.01, True), (60.0, False)])
def test_progress_shows_only_after_a_while(monkeypatch, patience, shows):
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(support, "_PATIENCE", patience)
    monkeypatch.setenv("TERM", "xterm")
    with support.Reporter().working("Growing [the tree]") as say:
        time.sleep(0.3)
        say("Growing: 7 nodes")
        time.sleep(0.3)
    assert ("Growing: 7 nodes" in terminal.getvalue()) is shows


def test_progress_tells_how_much_has_been_read(monkeypatch, tmp_path):
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(support, "_PATIENCE", 0.01)
    monkeypatch.setattr(parsing, "_LONG", 1000)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.chdir(tmp_path)
    table = Path("data.csv")
    table.write_text("a,y\n" + "1,2\n" * 1234)
    with support.Reporter().reading(str(table)):
        time.sleep(0.3)
        read_table(table)
        time.sleep(0.3)
    shown = terminal.getvalue()
    assert "Reading" in shown
    assert "1,234 rows" in shown


def test_no_progress_off_a_terminal_or_if_quiet(monkeypatch):
    monkeypatch.setattr(support, "_PATIENCE", 0.0)
    for quiet, stream in ((False, io.StringIO()), (True, _Terminal())):
        monkeypatch.setattr(sys, "stderr", stream)
        with support.Reporter(quiet).working("Growing") as say:
            say("Growing on")
            time.sleep(0.05)
        assert stream.getvalue() == ""


# The real program


def test_module_and_exit_code():
    command = [sys.executable, "-m", "branchwise", "fit", WEATHER, "-t", "ply"]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 1
    assert b"Did you mean 'play'?" in done.stderr


def test_ctrl_c_while_the_program_is_loaded(monkeypatch, capsys):
    class Loading(ModuleType):
        def __getattr__(self, name):
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "branchwise.cli.main", Loading("main"))
    with pytest.raises(SystemExit) as stopped:
        launcher.main()
    assert stopped.value.code == 130
    assert capsys.readouterr() == ("", "interrupted\n")


def test_a_real_pipe(start, model):
    process = start("predict", "-", WEATHER)
    out, err = process.communicate(model("weather").read_bytes())
    assert process.returncode == 0, err
    assert out.splitlines()[0] == b"prediction"
    assert err == b""


@pytest.mark.parametrize("unbuffered", first_fast(["", "1"]))
def test_a_pipe_that_closes_early(start, tmp_path, monkeypatch, unbuffered):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    rows = "".join(f"value {n},{n % 2}\n" for n in range(6_000))
    table = tmp_path / "data.csv"
    table.write_text("a,y\n" + rows)
    process = start("fit", table, "-t", "y", "-a", "id3", "-q")
    assert process.stdout.readline() == b"a = value 0: 0 (1)\n"
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(60) == 141


INTERRUPTED = (signal.SIGINT, 130, b"interrupted\n")
TERMINATED = (signal.SIGTERM, 143, b"terminated\n")
FITTING, WRITING = ("branchwise.cli.fit", "fit_tree"), ("os", "fsync")


@pytest.mark.parametrize(
    "case",
    first_fast(
        [
            (WRITING, INTERRUPTED),
            (FITTING, TERMINATED),
            (WRITING, TERMINATED),
            (FITTING, INTERRUPTED),
        ],
        n_fast=2,
    ),
)
def test_signals_leave_no_file(start, tmp_path, case):
    (module, name), (sent, code, told) = case
    folder = tmp_path / "out"
    folder.mkdir()
    run = (
        "import sys, time\n"
        "import branchwise.cli.fit\n"
        "from branchwise.cli.main import main\n"
        "def halt(*_, **__):\n"
        "    print('here', flush=True)\n"
        "    time.sleep(60)\n"
        f"setattr(sys.modules[{module!r}], {name!r}, halt)\n"
        "main()"
    )
    process = start("fit", WEATHER, "-t", "play", "-o", folder / "tree.json", code=run)
    assert process.stdout.readline() == b"here\n"
    process.send_signal(sent)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (code, told)
    assert not list(folder.iterdir())


def test_nothing_writes_over_what_it_reads(tmp_path, model):
    table, other = tmp_path / "data.csv", tmp_path / "more.csv"
    for path in (table, other):
        path.write_bytes(Path(WEATHER).read_bytes())
    tree = tmp_path / "tree.json"
    tree.write_bytes(model("weather").read_bytes())
    before = {path: path.read_bytes() for path in (table, other, tree)}
    link = tmp_path / "link.csv"
    link.symlink_to(table)
    grow, reduced = ["-t", "play"], ["--pruning", "reduced-error"]
    for command in (
        ["fit", table, *grow, "-o", table],
        ["fit", table, *grow, "-o", link],
        ["fit", table, *grow, *reduced, "--validation", other, "-o", other],
        ["predict", tree, table, "-o", tree],
        ["predict", tree, other, table, "-o", table],
        ["export", tree, "--to", "python", "--verify", table, "-o", table],
        ["show", tree, "--style", "quinlan", "-o", tree],
        ["view", tree, "-o", tree],
        ["view", tree, "--data", table, "-o", table],
        ["steps", table, *grow, "-o", table],
        ["report", table, *grow, "-o", table],
        ["tune", table, *grow, "--grid", "max_depth=1,2", "--results", table],
        ["prune", tree, "--data", table, "--method", "reduced-error", "-o", table],
    ):
        code, _, err = run(*command)
        assert (code, "would write over" in err) == (2, True), (command, err)
    code, _, err = run(
        *("tune", table, *grow, "--grid", "max_depth=1,2"),
        *("--results", tmp_path / "same", "-o", tmp_path / "same"),
    )
    assert code == 2
    assert "-o and --results would both write" in err
    assert {path: path.read_bytes() for path in before} == before
    # A model may be pruned in its place.
    assert run("prune", tree, "--merge-same-leaves", "-o", tree)[0] == 0


def test_a_tree_is_not_judged_by_the_rows_it_grew_from(tmp_path):
    copy = tmp_path / "copy.csv"
    copy.write_bytes(Path(WEATHER).read_bytes())
    out = tmp_path / "out"
    judged = ["--pruning", "reduced-error", "--validation", copy]
    for command in (
        ["fit", WEATHER, "-t", "play", *judged, "-o", out],
        ["steps", WEATHER, "-t", "play", *judged, "-o", out],
        ["report", WEATHER, "-t", "play", "--test", copy, "-o", out],
    ):
        code, _, err = run(*command)
        assert code == 2, command
        assert "has the rows of" in err
    assert not out.exists()


@pytest.mark.parametrize("subcommand", main_module.SUBCOMMANDS)
def test_pages_of_help_have_no_option_that_is_not_there(subcommand):
    declared = Page(subcommand)._options
    printed = output(subcommand, "--help")
    assert [flag for flag in declared if flag.split("/")[0] not in printed] == []


def test_a_declared_order(write):
    rows = "".join(f"{s},{s in 'lx'}\n" for s in "smlxsmlx")
    path = write(f"size,y\n{rows}")
    fit = ("fit", path, "-ty", "-acart", "-q")
    assert output(*fit, "--order=size=s,m,l,x").startswith("size <= m: False (4)")
    assert "must be a column, = and its values" in refusal(*fit, "--order=size", code=2)
    assert "'size' twice" in refusal(*fit, "--order=size=s", "--order=size=m", code=2)
    assert "both name 'size'" in refusal(
        *fit, "--order=size=s,m,l,x", "--categories=size=s,m,l,x", code=2
    )
    assert "Add it to" in refusal(*fit, "--order=size=s,m")
