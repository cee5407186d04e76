"""Random sessions: they replay to the same bytes, and undo restores previous ones."""

from __future__ import annotations

import random

import pytest

import branchwise
from branchwise import grow_by_hand
from hand_grown import NUMBERS, RECIPES, options, random_step, table

EVERY = {**RECIPES, **NUMBERS}


def played(seed, n_steps, path):
    """Play a session, and check that every way to repeat it gives the same bytes."""
    dice = random.Random(seed)
    name = dice.choice(list(EVERY))
    rows = table(120, seed, dice.random() < 0.6, name in NUMBERS, dice.random() < 0.3)
    journal = path / f"{seed}.actions.json"
    session = grow_by_hand(rows, "y", EVERY[name], journal=journal, **options(rows))
    before = session.model.to_bytes()
    for _ in range(n_steps):
        number = session.history.current
        if not random_step(session, dice):
            assert session.history.current == number
            continue
        after = session.model.to_bytes()
        if session.history[session.history.current].parent == number:
            session.undo()
            assert session.model.to_bytes() == before
            session.redo()
            assert session.model.to_bytes() == after
        before = after
    counts = session._editor.counts(session.recipe)
    assert session.state.tree == counts.counted(session.state.tree, counts.engine.root)
    opened = branchwise.open_session(journal, rows)
    assert opened.misfits == []
    assert opened.history.to_dict() == session.history.to_dict()
    assert opened.model.to_bytes() == session.model.to_bytes()
    assert opened.to_text() == session.to_text() == journal.read_text("utf-8")
    space = {"table": rows}
    exec(session.script(), space)
    assert space["model"].to_bytes() == session.model.to_bytes()


@pytest.mark.parametrize("seed", range(20))
def test_random_sessions_replay(seed, tmp_path):
    played(seed, 8, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("begin", range(0, 1000, 50))
def test_a_thousand_sessions_of_100_actions_replay(begin, tmp_path):
    for seed in range(begin, begin + 50):
        played(seed, 100, tmp_path)
