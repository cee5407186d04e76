"""Every script of examples/ runs, quickly and quietly, and says what it should."""

import runpy
import time
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(
    path.stem for path in EXAMPLES.glob("*.py") if not path.name.startswith("_")
)
#: Seconds of processor time, so that a busy machine does not fail a quick script.
LIMIT = 10


def exactly(figure):
    return pytest.approx(figure, rel=0, abs=1e-12)


def check_demo(figures, output):
    assert figures == {
        "rows": (1209, 519),
        "nodes": 291,
        "train_accuracy": 1.0,
        "test_accuracy": exactly(469 / 519),
        "answer": "vgood",
        "same_predictions": True,
        "same_model": True,
    }
    for word in ("Fit", "Show", "Predict", "Evaluate", "Save"):
        assert f"\n{word}" in output
    assert "if safety = low then unacc (419 of 419 cases, 100 %)" in output


def check_rules_for_people(figures, output):
    assert (figures["rules"], figures["listed"]) == (134, 59)
    tree, rules = figures["summary"]["tree"], figures["summary"]["rules"]
    assert (tree["conditions"], rules["conditions"]) == (631, 233)
    assert tree["test_accuracy"] == exactly(330 / 346)
    assert rules["test_accuracy"] == exactly(327 / 346)
    assert "If safety is low, then the answer is unacc (460 of 460" in output


def check_explain_a_decision(figures, output):
    wages = "wage-increase-first-year from 2.1 to more than 2.5"
    assert figures == {
        "answer": "bad",
        "steps": ["wage-increase-first-year <= 2.5 (it is 2.1)"],
        "changes": [wages, "statutory-holidays from 9 to 11 or more"],
        "now_good": True,
        "stuck": (
            "No allowed change gives good. Without limits the smallest would be: "
            f"{wages}; statutory-holidays from 9 to more than 10, but "
            "wage-increase-first-year is immutable."
        ),
        "shares": [0.732, 0.268],
        "agreement": exactly(47 / 57),
    }
    assert "95 % interval (Wilson) 60.6 % to 95.5 %" in output
    assert "Answers: 10 of 57 rows change" in output


def check_pictures(figures, output):
    assert figures["box"] in output
    assert figures["box"].startswith("play\n├── outlook = overcast: yes (4)\n")
    assert figures["width"] == 474
    assert figures["mermaid"].startswith("flowchart TD\n")
    assert "… 2 more" in output
    assert set(figures["sizes"]) == {"tree.svg", "tree.dot"}


def check_interactive_tree(figures, output):
    assert figures["nodes"] == 182
    assert "<title>Which cars are acceptable?</title>" in figures["page"]
    assert not figures["network"]
    assert figures["shown"].startswith('<iframe sandbox="allow-scripts"')
    assert "all in one file" in output


def check_score_in_sql(figures, output):
    assert figures["verified"]
    assert figures["same"]
    assert len(figures["labels"]) == 14
    assert figures["likely"] == figures["labels"].count("yes") == 9
    assert "CASE\n" in output
    assert "14 rows scored in the database, 9 of them likely to play." in output


def check_seed_000_votes(figures, output):
    assert figures["gains"] == {
        "Sex": pytest.approx(0.0199730940, abs=5e-11),
        "Education": pytest.approx(0.3219280949, abs=5e-11),
    }
    assert figures["weighted"] == {"F": exactly(0.4), "M": exactly(0.5509775004326937)}
    assert set(figures["verdicts"].values()) == {"right"}
    assert figures["percent, max_depth=None"] == (100.0, 100.0)
    assert figures["percent, max_depth=2"] == (96.22857142857143, 95.63333333333334)
    assert figures["size, max_depth=None"] == (14, 10, 3)
    assert figures["size, max_depth=2"] == (8, 6, 2)
    assert "ask about Education" in output


def check_seed_001_fish_car(figures, output):
    assert list(figures["gains"].values()) == [
        pytest.approx(0.4199730940, abs=5e-11),
        pytest.approx(0.1709505945, abs=5e-11),
    ]
    assert list(figures["weighted"].values()) == [
        exactly(0.9709505944546686),
        exactly(0.5509775004326937),
        exactly(0.8),
    ]
    assert [f"{bits:.15g}" for bits in figures["single_precision"].values()] == [
        "0.97095057690894",
        "0.550977512949583",
        "0.800000011920929",
    ]
    assert figures["fish_size"] == (5, 3, 2)
    assert figures["fish_tree"] in output
    assert figures["car_right"] == (1728, 1728)
    assert figures["car_size"] == (408, 296, 6)


def check_seed_002_tennis(figures, output):
    assert figures["entropies"] == {
        "cloudy": 0.0,
        "rainy": exactly(0.9709505944546686),
        "sunny": exactly(0.9709505944546686),
    }
    assert figures["remaining"] == exactly(0.6935361388961918)
    assert figures["gains"]["root"] == {
        "outlook": exactly(0.24674981977443933),
        "temperature": exactly(0.02922256565895487),
        "humidity": exactly(0.15183550136234159),
        "wind": exactly(0.04812703040826949),
    }
    verdicts = figures["verdicts"]
    assert [name for name, said in verdicts.items() if said.startswith("wrong")] == [
        "entropy left by outlook"
    ]
    assert sum(said.startswith("cut off") for said in verdicts.values()) == 8
    assert sum(said == "right" for said in verdicts.values()) == 6
    assert figures["size"] == (8, 5, 2)
    assert figures["tree"] in output


def check_seed_003_golf(figures, output):
    assert figures["wind_counts"] == {
        "Strong": {"Yes": 3, "No": 3},
        "Weak": {"Yes": 6, "No": 2},
    }
    assert figures["wind_entropies"] == {
        "Strong": exactly(1.0),
        "Weak": exactly(0.8112781244591328),
    }
    assert {name: exactly(bits) for name, bits in figures["gains"]["root"].items()} == (
        figures["mutual_information"]
    )
    assert figures["gains"]["Rain"] == {
        "Temperature": pytest.approx(0.0199730940, abs=5e-11),
        "Humidity": pytest.approx(0.0199730940, abs=5e-11),
        "Wind": pytest.approx(0.9709505945, abs=5e-11),
    }
    assert figures["verdicts"]["gain of Outlook"] == "cut off, should be 0.247"
    assert figures["size"] == (8, 5, 2)
    assert figures["tree"] in output


def check_seed_004_digits(figures, output):
    toy, digits = figures["toy"], figures["digits"]
    assert toy["size"] == (11, 6)
    assert toy["size_with_empty"] == (13, 8)
    assert toy["text"].count("(0)") == 2
    assert toy["predicted"] == ["+", "+", "+", "-", "-"]
    assert toy["accuracy"] == 0.6
    assert max(toy["gains"]["s"], key=toy["gains"]["s"].get) == "shape"
    assert max(toy["gains"]["l"], key=toy["gains"]["l"].get) == "color"
    one, other = toy["running_gains"]
    assert abs(one - other) > 0.1

    assert digits["rows"] == (1257, 540)
    raw, bins, numbers, *scikit = digits["accuracy"].values()
    assert f"{np.mean(raw):.4f}" == "0.4572"
    assert f"{np.mean(bins):.4f}" == "0.7953"
    # Thresholds on the same pixels: another library's trees, so no exact figures.
    for scores in (numbers, *scikit):
        assert 0.8 < np.mean(scores) < 0.9
    assert output.count("weighted avg") == 3  # reports: toy, raw, bins
    assert output.count("[[") == 2  # confusion matrices: raw, bins


def check_steps_for_teaching(figures, output):
    assert figures["entropy"] == exactly(0.9402859586706311)
    assert figures["gains"] == {
        "outlook": exactly(0.24674981977443933),
        "temperature": exactly(0.02922256565895487),
        "humidity": exactly(0.15183550136234159),
        "wind": exactly(0.04812703040826949),
    }
    assert figures["sunny"] == {
        "outlook": None,
        "temperature": pytest.approx(0.5709505945, abs=5e-11),
        "humidity": pytest.approx(0.9709505945, abs=5e-11),
        "wind": pytest.approx(0.0199730940, abs=5e-11),
    }
    assert figures["chosen"] == ("outlook", "humidity", "outlook")
    assert figures["text"] in output
    assert figures["files"] == ["steps.tex", "steps.md", "steps.html", "answers.html"]


def check_ship_a_tree(figures, output):
    assert figures == {
        "c": 0,
        "javascript": 0,
        "json": 0,
        "python": 0,
        "answer": "democrat",
    }
    assert "python: 435 rows in a Python process: 0 differences" in output
    assert "def _part_0(cells, s0, todo):" in output


CHECKS = {
    "demo": check_demo,
    "rules_for_people": check_rules_for_people,
    "explain_a_decision": check_explain_a_decision,
    "pictures": check_pictures,
    "interactive_tree": check_interactive_tree,
    "score_in_sql": check_score_in_sql,
    "seed_000_votes": check_seed_000_votes,
    "seed_001_fish_car": check_seed_001_fish_car,
    "seed_002_tennis": check_seed_002_tennis,
    "seed_003_golf": check_seed_003_golf,
    "seed_004_digits": check_seed_004_digits,
    "steps_for_teaching": check_steps_for_teaching,
    "ship_a_tree": check_ship_a_tree,
}


def test_every_script_has_a_check():
    assert sorted(CHECKS) == SCRIPTS


@pytest.mark.parametrize("script", SCRIPTS)
def test_script(script, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(EXAMPLES)  # what running a script does
    started = time.process_time()
    names = runpy.run_path(str(EXAMPLES / f"{script}.py"))
    figures = names["main"]()
    seconds = time.process_time() - started
    output = capsys.readouterr()

    CHECKS[script](figures, output.out)
    assert names["__doc__"]
    assert output.err == ""
    assert seconds < LIMIT
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_are_listed_and_can_be_started(script):
    assert f"{script}.py" in (EXAMPLES / "README.md").read_text(encoding="utf-8")
    source = (EXAMPLES / f"{script}.py").read_text(encoding="utf-8")
    assert source.endswith('if __name__ == "__main__":\n    main()\n')
