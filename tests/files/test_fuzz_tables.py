"""Mutated tables are read or refused; ``fuzz/tables.py`` has the mutations."""

from __future__ import annotations

from collections import Counter

import pytest
from fuzz import tables

from selection import examples


def outcomes(numbers, folder, n_seeds=None):
    return Counter(tables.try_one(number, folder, n_seeds) for number in numbers)


def test_mutated_files_of_text(tmp_path):
    n_files = examples(1200)
    done = outcomes(range(n_files), tmp_path, tables.N_TEXT)
    assert set(done) == {"read", "refused"}
    assert min(done.values()) > 0.15 * n_files


def test_mutated_files_of_every_format():
    done = tables.campaign(60, 0)
    assert set(done) == {"read", "refused"}


@pytest.mark.slow
def test_many_mutated_files():
    done = tables.campaign(20_000, 1_000_000)
    assert set(done) == {"read", "refused"}


def test_a_hang_would_be_noticed():
    def hang():
        while True:
            pass

    with pytest.raises(TimeoutError), tables.time_limit(1):  # of processor time
        hang()
