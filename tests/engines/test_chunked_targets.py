"""The chunked engine reads the numbers of a target as the memory does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from branchwise import Model, fit_tree
from branchwise.recipe import CART
from command_line import output, run

REGRESSION = replace(CART, criterion="variance")
N = 60
RNG = np.random.default_rng(3)
X = RNG.integers(1000, 9_000_000, N)


def german(number):
    return f"{number:,.2f}".translate(str.maketrans(",.", ".,"))


#: Thousands, or numbers with three decimals.
THOUSANDS = [german(x // 10 + 1000)[:-3] for x in X]


def written(path, targets, amounts=None):
    amounts = [german(x / 100) for x in X] if amounts is None else amounts
    rows = zip(amounts, targets, strict=True)
    path.write_text("\n".join(["x;y", *(f"{x};{y}" for x, y in rows), ""]))
    return path


def fitted(path, tmp_path, engine, *options):
    model = tmp_path / f"{engine}.json"
    command = ("fit", path, "-t", "y", "-a", "cart", "--regression")
    code, _, errors = run(*command, *options, "--engine", engine, "-o", model)
    assert code == 0, errors
    return model.read_bytes()


@pytest.mark.filterwarnings("ignore:.*read as numbers")
@pytest.mark.parametrize(
    ("targets", "options"),
    [
        ([german(x / 7) for x in X], ()),
        ([german(x / 7) for x in X], ("--decimal", ",")),
        ([f"{x / 7:.2f} €".replace(".", ",") for x in X], ()),
        ([str(x) for x in X], ()),
        (THOUSANDS, ("--thousands", ".")),
    ],
    ids=["german", "insisted", "currency", "plain", "thousands"],
)
def test_targets_are_read_and_kept_as_in_memory(targets, options, tmp_path):
    path = written(tmp_path / "t.csv", targets)
    chunked = fitted(path, tmp_path, "chunked", *options)
    assert chunked == fitted(path, tmp_path, "memory", *options)
    model = Model.from_bytes(chunked)
    plain = targets == [str(x) for x in X]
    assert (model.schema.target_format is None) == plain
    scores = output("evaluate", tmp_path / "chunked.json", path)
    assert "R^2" in scores


def test_points_beside_decimal_commas_are_a_question(tmp_path):
    path = written(tmp_path / "t.csv", THOUSANDS)
    command = ("fit", path, "-t", "y", "-a", "cart", "--regression")
    told = [run(*command, "--engine", e)[2] for e in ("memory", "chunked")]
    assert told[0] == told[1]
    assert "Column 'y' of" in told[0]
    assert "can be read in two ways" in told[0]


def test_the_library_keeps_it_in_every_engine(tmp_path):
    path = tmp_path / "t.tsv"
    path.write_text(
        written(path, [german(x / 7) for x in X]).read_text().replace(";", "\t")
    )
    models = []
    for engine in ("memory", "chunked"):
        with pytest.warns(UserWarning, match="read as numbers"):
            models.append(fit_tree(str(path), "y", REGRESSION, engine=engine))
    assert models[0].to_bytes() == models[1].to_bytes()
    assert models[0].schema.target_format.decimal == ","


def test_targets_that_are_no_numbers_are_named(tmp_path):
    path = written(tmp_path / "t.csv", [*(german(x) for x in X[1:]), "many"])
    command = ("fit", path, "-t", "y", "-a", "cart", "--regression")
    code, _, errors = run(*command, "--engine", "chunked")
    assert (code, "'y' must hold numbers" in errors) == (1, True)
