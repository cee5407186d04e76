"""``branchwise evaluate`` with a table alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from branchwise import C45Classifier, ID3Classifier, datasets
from branchwise.evaluation import compare, cross_validated
from command_line import output, refusal, run

IRIS = datasets.path("iris")
WEATHER = datasets.path("weather")


@pytest.fixture
def votes(tmp_path):
    lines = Path(datasets.path("votes")).read_text(encoding="utf-8").splitlines()
    path = tmp_path / "votes.csv"
    path.write_text("\n".join([lines[0], *lines[1::20]]) + "\n", encoding="utf-8")
    return path, datasets.load("votes").target


def test_the_command_is_the_function():
    iris = datasets.load("iris")
    options = ["--confidence", "0.1", "--min-samples-branch", "5"]
    text = output(
        "evaluate", IRIS, "-t", iris.target, "-a", "c4.5", "--cv", 5, *options
    )
    own = C45Classifier(confidence=0.1, min_samples_branch=5)
    found = compare({"c4.5": own}, iris.X, iris.y, cv=5)["c4.5"]
    assert text.startswith(str(found))
    assert text.splitlines()[-1] == (
        f"accuracy {found['accuracy'].mean:.4f}; always predicting the most frequent "
        "class: 0.3333."
    )
    again = output(
        "evaluate",
        IRIS,
        "-t",
        iris.target,
        "-a",
        "c4.5",
        "--cv=5",
        *options,
        "--jobs=2",
    )
    assert again == text


def test_tables_of_every_form(votes, tmp_path):
    path, target = votes
    head, *rows = path.read_text(encoding="utf-8").splitlines()
    other = tmp_path / "votes.txt"
    other.write_text("\n".join(rows).replace(",", "|"), encoding="utf-8")
    named = ["--separator", "|", "--no-header", "--names", head]
    dealt = ["-t", target, "--cv", 3]
    wanted = output("evaluate", path, *dealt)
    assert output("evaluate", other, *dealt, *named) == wanted
    output("fit", path, "-t", target, "-o", tmp_path / "tree.json", "-q")
    wanted = output("evaluate", tmp_path / "tree.json", path)
    assert output("evaluate", tmp_path / "tree.json", other, *named) == wanted


def test_several_side_by_side(votes):
    path, target = votes
    arguments = ["evaluate", path, "-t", target, "--compare", "id3,c4.5,cart,sklearn"]
    text = output(*arguments, "--cv", 3, "--max-depth", 2)
    names = [line.split()[0] for line in text.splitlines()[3:8]]
    assert names == ["id3", "c4.5", "cart", "sklearn", "baseline"]
    document = json.loads(output(*arguments, "--cv=3", "--format=json"))
    assert [one["algorithm"] for one in document["algorithms"]] == names
    assert document["differences"][0]["from"] == "id3"
    shallow = json.loads(
        output(
            *arguments, "--cv=3", "--max-depth=1", "--confidence=0.1", "--format=json"
        )
    )
    depths = {
        o["algorithm"]: o["scores"]["depth"]["mean"] for o in shallow["algorithms"]
    }
    assert depths["id3"] == depths["cart"] == 1.0  # sklearn has no options of ours
    assert depths["sklearn"] > 1


def test_hold_out_repeats_and_seed():
    target = datasets.load("iris").target
    base = ["evaluate", IRIS, "-t", target, "--format", "json"]

    def document(*more):
        return json.loads(output(*base, *more))["algorithms"][0]

    one = document("--hold-out", 0.3)
    assert sum(map(sum, one["confusion_matrix"])) == 45
    assert one["scores"] == document("--hold-out", 0.3)["scores"]
    other = document("--hold-out", 0.3, "--seed", 5)
    assert other["folds"] == {"cv": None, "repeats": 1, "hold_out": 0.3, "seed": 5}
    twice = document("--cv", 3, "--repeats", 2)
    assert len(twice["scores"]["accuracy"]["folds"]) == 6
    assert one["interval"] != twice["interval"]


def test_numbers_and_weights(tmp_path):
    found = output("evaluate", IRIS, "-t", "petalwidth", "--regression", "--cv", 4)
    assert found.startswith("cart: 4-fold cross-validation, 150 rows")
    assert "always predicting the mean: " in found
    rows = "".join(f"{'ab'[i % 2]},{i % 3},{'yn'[i % 2]}\n" for i in range(30))
    path = tmp_path / "w.csv"
    path.write_text("x,w,y\n" + rows, encoding="utf-8")
    text = output("evaluate", path, "-t", "y", "--weight", "w", "--cv", 3)
    assert "accuracy           1.0000" in text


def test_classes_by_name():
    target = datasets.load("weather").target
    document = json.loads(
        output(
            "evaluate",
            WEATHER,
            "-t",
            target,
            "--cv=2",
            "--class-weight=yes=2,no=1",
            "--costs=yes:no=5",
            "--format=json",
        )
    )
    weather = datasets.load("weather")
    own = ID3Classifier(class_weight={"yes": 2, "no": 1}, costs=[[0, 1], [5, 0]])
    wanted = cross_validated(own, weather.X, weather.y, cv=2)
    found = document["algorithms"][0]
    assert found["confusion_matrix"] == wanted.confusion.tolist()


@pytest.mark.parametrize("algorithm", ["id3", "c4.5", "cart"])
def test_no_pruning_is_a_choice(algorithm):
    table = datasets.path("weather")
    given = ["evaluate", table, "-t", "play", "-a", algorithm, "--cv", "2"]
    off = "--no-prune" if algorithm == "c4.5" else "--quiet"
    assert output(*given, "--pruning", "none") == output(*given, off)


def test_notes_go_to_standard_error(votes):
    path, target = votes
    code, out, err = run("evaluate", path, "-t", target, "--cv", 2)
    assert code == 0
    assert "Nadeau and Bengio" in err
    assert "Nadeau" not in out
    assert run("evaluate", path, "-t", target, "--cv", 2, "-q") == (0, out, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([WEATHER], "With a table alone, --target must name the column to predict."),
        ([WEATHER, "-t", "play", "--hold-out", "1"], "--hold-out must be a share"),
        (
            [WEATHER, "-t", "play", "--hold-out", ".3", "--cv", "3"],
            "--cv has no effect with --hold-out. Give one of them.",
        ),
        (
            [WEATHER, "-t", "play", "--hold-out", ".3", "--repeats", "3"],
            "--repeats has no effect with --hold-out.",
        ),
        (
            [WEATHER, "-t", "play", "-a", "id3", "--compare", "cart"],
            "--algorithm and --compare both name algorithms. Give one of them.",
        ),
        (
            [WEATHER, "-t", "play", "--compare", "id3,c5"],
            (
                "--compare names 'c5'. The algorithms are 'id3', 'c4.5', 'cart', "
                "'forest', 'boosted', 'gradient', 'rules', 'sklearn'"
            ),
        ),
        (
            [WEATHER, "-t", "play", "--compare", "id3", "--regression"],
            (
                "The algorithms are 'cart', 'forest', 'gradient', 'sklearn', "
                "'baseline' with --regression."
            ),
        ),
        (
            [WEATHER, "-t", "play", "-a", "cart", "--group-values"],
            "--group-values applies only to --algorithm c4.5. Got cart",
        ),
        (
            [WEATHER, "-t", "play", "--compare", "id3,cart", "--group-values"],
            "--group-values has no effect: none of 'id3', 'cart' has it.",
        ),
        (
            [WEATHER, "-t", "play", "--compare", "id3,cart", "--confidence", "0.1"],
            "--confidence has no effect: none of 'id3', 'cart' has it.",
        ),
        ([WEATHER, "-t", "play", "--jobs", "0"], "n_jobs must be None or a whole"),
    ],
)
def test_bad_usage(arguments, message):
    assert message in refusal("evaluate", *arguments, code=2)


def test_options_that_have_no_effect_on_a_model(tmp_path):
    target = datasets.load("weather").target
    tree = tmp_path / "tree.json"
    output("fit", WEATHER, "-t", target, "-o", tree, "-q")
    for option in (["--cv", "3"], ["--max-depth", "2"], ["--ignore", "wind"]):
        message = refusal("evaluate", tree, WEATHER, *option, code=2)
        assert message.startswith(f"{option[0]} has no effect on a model that is grown")


def test_rows_that_are_too_few():
    assert "15-fold cross-validation needs at least 15 rows. Got 14." in refusal(
        "evaluate", WEATHER, "-t", "play", "--cv=15"
    )
    assert "No class has as many rows" in refusal(
        "evaluate", WEATHER, "-t", "play", "--cv=10"
    )
    assert "Choose a larger share, or pass more rows." in refusal(
        "evaluate", WEATHER, "-t", "play", "--hold-out", "0.05"
    )


@pytest.mark.parametrize("verb", ["evaluate", "tune", "report"])
def test_seeds_have_a_bound(verb, tmp_path):
    page = ["-o", tmp_path / "page.html"] if verb == "report" else []
    seed = ["--seed", "99999999999"]
    code, out, err = run(verb, WEATHER, "-t", "play", *seed, *page)
    assert (code, out) == (2, "")
    assert "'--seed'" in err.splitlines()[-1]
    assert "4294967295" in err.splitlines()[-1]


@pytest.mark.filterwarnings("default:All rows have the same class")
def test_a_target_with_one_class(tmp_path):
    table, tree = tmp_path / "one.csv", tmp_path / "tree.json"
    table.write_text("x,y\n" + "".join(f"{n},k\n" for n in range(6)))
    _, _, err = run("evaluate", table, "-t", "y", "--cv", 2)
    notes = err.splitlines()
    assert len(notes) == 2
    assert notes[0].startswith("note: All rows have the same class, so that every")
    output("fit", table, "-t", "y", "-o", tree, "-q")
    assert run("evaluate", tree, table)[2] == ""
