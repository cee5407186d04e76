"""Mutated model files: each is refused, or does all that a model does.

    python fuzz/models.py --n 200000 --seed 1
    python fuzz/models.py --n 100000 --seed 1 --ensembles

mutates valid model files of every kind: their bytes, their values, and amounts, names,
policies and branches that a model may have though no table has led to them. Each file
is opened; each model that opens is shown, asked, explained, pruned, compared, saved and
exported (as source text: no other program is run). With ``--ensembles`` the files are
those of ensembles. Anything that raises something else
than a BranchwiseError, warns, takes too long or too much memory is a finding. It is
printed with its number, and ``--only NUMBER`` with the same seed repeats it. The exit
code is 1 if there is any.

The work is done by child processes with limits of time and memory, one after the other.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/helpers"))

import numpy as np

from branchwise import BranchwiseError, BranchwiseWarning, Model, export
from branchwise import model_file as persist
from branchwise.data.table_schema import Column
from branchwise.ensemble.ensemble import Ensemble
from limits import time_limit
from mixed_ensembles import boosted_ensembles, damaged, small_ensemble
from mixed_trees import ESTIMATORS, random_model
from model_mutations import damage_bytes, damage_meaning, damage_value, paths_of

#: Valid files that mutations start from: one or two of every kind of estimator.
N_SOURCES = 2 * len(ESTIMATORS)
#: Seconds that one thing done with a model may take, and bytes of memory for a child.
SECONDS = 20
MEMORY = 4 * 2**30
#: Files for one child.
BATCH = 2000
#: Things that are done with each model that opens, drawn anew for each.
DRAWN = 3
#: Trees have so many levels: small ones are quick, and break in the same places.
LEVELS = 2


@lru_cache(maxsize=1)
def sources() -> list[tuple[bytes, Any, list[Any]]]:
    """Return valid files, parsed, with the paths to their values."""
    found = []
    for number in range(N_SOURCES):
        model = random_model(number, seed=number)
        deep = np.flatnonzero((model.tree.depth == LEVELS) & ~model.tree.is_leaf)
        content = (
            model.collapse_nodes(*deep.tolist()) if len(deep) else model
        ).to_bytes()
        document = json.loads(content)
        found.append((content, document, paths_of(document)))
    return found


@lru_cache(maxsize=1)
def ensemble_sources() -> list[tuple[bytes, Any]]:
    """Return valid files of ensembles, parsed."""
    ensembles = [small_ensemble(number, number) for number in range(N_SOURCES)]
    ensembles += boosted_ensembles()
    made = (ensemble.to_bytes() for ensemble in ensembles)
    return [(content, json.loads(content)) for content in made]


def mutated(seed: int, number: int, ensembles: bool = False) -> bytes:
    """Return the mutant of a number."""
    rng = random.Random(f"{seed} {number}")
    if ensembles:
        return damaged(*rng.choice(ensemble_sources()), rng)
    content, document, paths = rng.choice(sources())
    match rng.randrange(5):
        case 0:
            return damage_bytes(content, rng)
        case 1:
            return json.dumps(damage_value(document, paths, rng)).encode()
        case _:
            return json.dumps(damage_meaning(document, rng)).encode()


def cells_of(column: Column, rng: random.Random, n_rows: int) -> list[Any]:
    """Return cells of a column: known ones, gaps, and some that training had not."""
    if column.is_numeric:
        pool: list[Any] = [0.0, 0.5, -1e300, 1e300, 2.45, 5e-324, None, 3.0]
    else:
        new = {"text": "something new", "boolean": None, "number": 12345.678}
        pool = [*column.categories[:5], new.get(column.value_type or "text"), None]
    return [rng.choice(pool) for _ in range(n_rows)]


def table_of(model: Model, rng: random.Random, n_rows: int = 12) -> Any:
    """Return random rows for a model."""
    columns = model.schema.columns
    return {column.name: cells_of(column, rng, n_rows) for column in columns}


def labels_of(model: Model, rng: random.Random, n_rows: int = 12) -> list[Any]:
    """Return random labels for a model."""
    pool = model.schema.classes or (0.0, 1.0, 2.5, 1e6)
    return [rng.choice(pool) for _ in range(n_rows)]


def answers(model: Model, rng: random.Random) -> None:
    """Predict: probabilities add up, and labels are classes."""
    X = table_of(model, rng)
    labels = model.predict(X)
    nodes = model.apply(X)
    assert ((nodes >= 0) & (nodes < len(model.tree))).all()
    if model.tree.is_regression:
        assert np.isfinite(labels.astype(float)).all()
        return
    assert set(labels.tolist()) <= set(model.schema.classes)
    chances = model.predict_proba(X)
    assert np.isfinite(chances).all()
    assert (chances >= 0).all()
    assert np.allclose(chances.sum(axis=1), 1)
    model.score(X, labels_of(model, rng))


def explains(model: Model, rng: random.Random) -> None:
    """Explain one row and several."""
    for n_rows in (1, 4):
        told = model.explain(table_of(model, rng, n_rows))
        for form in (str, repr, lambda one: one.to_json(), lambda one: one.to_html()):
            assert form(told)


def asks_what_if(model: Model, rng: random.Random) -> None:
    """Look for the smallest change that flips an answer."""
    target = rng.choice(model.schema.classes or [(0.0, None), (-1e300, 1e300)])
    asked = model.what_if(table_of(model, rng, 1), target)
    assert str(asked)
    assert asked.to_json()


def differs(model: Model, rng: random.Random) -> None:
    """Compare with a valid model, itself, and a pruned one."""
    content, _, _ = rng.choice(sources())
    for other in (Model(*persist.from_bytes(content)), model, model.collapse_nodes(0)):
        told = model.diff(other)
        assert str(told)
        assert told.to_json()


def shows_rules(model: Model, rng: random.Random) -> None:
    """Write the rules in every form."""
    rules = model.rules(simplify=rng.random() < 0.5)
    for rule in rules:
        assert str(rule)
        assert rule.sentence()
    for form in (rules.to_text, rules.to_markdown, rules.to_json, rules.to_columns):
        assert form()
    rules.sort_by(rng.choice(["coverage", "confidence"]))


def saves(model: Model, rng: random.Random) -> None:  # noqa: ARG001
    """Save and open: the same bytes, and the same model."""
    written = model.to_bytes()
    again = Model(*persist.from_bytes(written))
    assert again.to_bytes() == written
    assert again == model


def prunes(model: Model, rng: random.Random) -> None:
    """Prune in every way; what comes out is a model that is saved and opened."""
    X, y = table_of(model, rng), labels_of(model, rng)
    method = rng.choice(["error-based", "reduced-error", "cost-complexity"])
    rows = (X, y) if method == "reduced-error" or rng.random() < 0.3 else ()
    options: dict[str, Any] = {}
    if method == "cost-complexity":
        options["ccp_alpha"] = rng.choice([0.0, 0.01, 1e300, "best"])
    saves(model.prune(method, *rows, **options), rng)


def prunes_by_hand(model: Model, rng: random.Random) -> None:
    """Collapse a node, merge leaves with the same prediction, list the pruning path."""
    saves(model.collapse_nodes(rng.randrange(len(model.tree))), rng)
    saves(model.merge_same_leaves(change_probabilities=rng.random() < 0.5), rng)
    assert str(model.pruning_path())


def exports(model: Model, rng: random.Random) -> None:
    """Write the source of an export."""
    target = rng.choice(list(export.TARGETS))
    choices = export.TARGETS[target].choices
    options = {name: rng.choice(c) for name, c in choices.items() if len(c) > 1}
    if target == "excel":
        options["lines"] = "3"
    assert export.write(model, target, **options)


def works_out(model: Model, rng: random.Random) -> None:
    """Ask for the worked solution and for generalised rules."""
    X, y = table_of(model, rng), labels_of(model, rng)
    for method in (model.steps, model.generalised_rules):
        try:
            assert repr(method(X, y))
        except BranchwiseError:
            continue


def shows(model: Model, rng: random.Random) -> None:
    """Show the model as text."""
    for style in ("quinlan", "box", "markdown"):
        assert model.to_text(empty_branches=True, missing=True, style=style)
    assert str(model)
    assert repr(model)
    assert model.schema.describe()
    assert np.isfinite(model.feature_importances).all()
    assert json.dumps(model.view(), allow_nan=False)
    depth = rng.choice([None, 0, 1])
    assert model.to_dot(depth)
    assert model.to_mermaid(depth)


def draws(model: Model, rng: random.Random) -> None:
    """Draw the model."""
    assert model.to_svg(rng.choice([None, 0, 1]))
    assert model.to_html()


DEEDS: tuple[Callable[[Model, random.Random], None], ...] = (
    answers,
    explains,
    asks_what_if,
    differs,
    shows_rules,
    saves,
    prunes,
    prunes_by_hand,
    exports,
    exports,
    works_out,
    shows,
    draws,
)


def predict_together(ensemble: Ensemble, rng: random.Random) -> None:
    """Predict by all trees: probabilities add up, and labels are classes."""
    X = table_of(ensemble[0], rng)
    labels = ensemble.predict(X)
    assert ensemble.apply(X).shape == (12, len(ensemble))
    if ensemble.is_regression:
        assert np.isfinite(labels.astype(float)).all()
        return
    assert set(labels.tolist()) <= set(ensemble.schema.classes)
    assert np.allclose(ensemble.predict_proba(X).sum(axis=1), 1)


def save_together(ensemble: Ensemble, rng: random.Random) -> None:  # noqa: ARG001
    """Save and open an ensemble: the same bytes."""
    written = ensemble.to_bytes()
    assert Ensemble(*persist.from_bytes(written)).to_bytes() == written


def show_together(ensemble: Ensemble, rng: random.Random) -> None:  # noqa: ARG001
    """Describe an ensemble, and add up the importances of its columns."""
    assert repr(ensemble)
    assert np.isfinite(ensemble.feature_importances).all()


def use_one_tree(ensemble: Ensemble, rng: random.Random) -> None:
    """Do with a tree of the ensemble something that a model does."""
    rng.choice(DEEDS)(rng.choice(list(ensemble)), rng)


ENSEMBLE_DEEDS = (predict_together, save_together, show_together, use_one_tree)


def opened(content: bytes) -> Model | Ensemble:
    """Open the content of a file."""
    stored = persist.from_bytes(content)
    is_ensemble = isinstance(stored, persist.StoredEnsemble)
    return Ensemble(*stored) if is_ensemble else Model(*stored)


def try_one(
    seed: int, number: int, every: bool = False, ensembles: bool = False
) -> str:
    """Try one mutant; return "refused" or "used", raise for a finding."""
    content = mutated(seed, number, ensembles)
    rng = random.Random(f"use {seed} {number}")
    try:
        with time_limit(SECONDS):
            model = opened(content)
    except BranchwiseError:
        return "refused"
    deeds = ENSEMBLE_DEEDS if isinstance(model, Ensemble) else DEEDS
    for deed in deeds if every else rng.sample(deeds, DRAWN):
        try:
            with time_limit(SECONDS), warnings.catch_warnings():
                warnings.simplefilter("error")
                warnings.simplefilter("ignore", BranchwiseWarning)
                deed(model, rng)
        except BranchwiseError:
            continue
        except Exception as error:
            raise RuntimeError(f"{deed.__name__}: {error!r}") from error
    return "used"


def work(seed: int, start: int, stop: int, ensembles: bool) -> None:
    """Try some mutants; tell each finding, and where we are, in a line of JSON."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    done: Counter[str] = Counter()
    for number in range(start, stop):
        print(json.dumps({"at": number}), flush=True)
        try:
            done[try_one(seed, number, ensembles=ensembles)] += 1
        except RuntimeError as error:
            told = traceback.format_exception(error.__cause__)[-6:]
            print(json.dumps({"finding": number, "what": str(error), "where": told}))
    print(json.dumps({"done": done}), flush=True)


def batch(
    seed: int, start: int, stop: int, total: Counter[str], ensembles: bool
) -> int:
    """Let a child try some mutants; return where to go on."""
    command = [sys.executable, __file__, "--seed", str(seed)]
    command += ["--ensembles", "--work"] if ensembles else ["--work"]
    at = start
    with subprocess.Popen(
        [*command, str(start), str(stop)], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        for line in child.stdout:
            told = json.loads(line)
            at = told.get("at", at)
            total.update(told.get("done", {}))
            if "finding" in told:
                total["findings"] += 1
                print(f"seed {seed}, number {told['finding']}: {told['what']}")
                print("".join(told["where"]), flush=True)
    if child.returncode == 0:
        return stop
    total["findings"] += 1
    print(f"seed {seed}, number {at}: the process ended with {child.returncode}")
    return at + 1


def main() -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--n", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="repeat one mutant")
    parser.add_argument("--ensembles", action="store_true", help="files of ensembles")
    parser.add_argument("--work", type=int, nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.work:
        work(chosen.seed, *chosen.work, chosen.ensembles)
        return 0
    if chosen.only is not None:
        which = (chosen.seed, chosen.only)
        print(mutated(*which, chosen.ensembles).decode(errors="replace"))
        print(try_one(*which, ensembles=chosen.ensembles))
        return 0
    total: Counter[str] = Counter()
    start, begun = 0, time.monotonic()
    while start < chosen.n:
        stop = min(start + BATCH, chosen.n)
        start = batch(chosen.seed, start, stop, total, chosen.ensembles)
        if start % (10 * BATCH) == 0:
            print(f"{start:,} files: {dict(total)}", flush=True)
    took = time.monotonic() - begun
    print(f"{chosen.n:,} mutated model files in {took:.0f} s: {dict(total)}")
    return 1 if total["findings"] else 0


if __name__ == "__main__":
    sys.exit(main())
