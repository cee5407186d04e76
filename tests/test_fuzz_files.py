"""Mutated files are read or refused; ``fuzz_files.py`` has the mutations."""

from __future__ import annotations

import time
from collections import Counter

import pytest

import fuzz_files


def outcomes(numbers, folder):
    return Counter(fuzz_files.try_one(number, folder) for number in numbers)


def test_two_thousand_mutated_files(tmp_path):
    done = outcomes(range(2000), tmp_path)
    assert set(done) == {"read", "refused"}
    assert min(done.values()) > 300


@pytest.mark.slow
def test_two_hundred_thousand_mutated_files(tmp_path):
    done = outcomes(range(200_000), tmp_path)
    assert set(done) == {"read", "refused"}


def test_a_hang_would_be_noticed():
    with pytest.raises(TimeoutError), fuzz_files.time_limit(1):
        time.sleep(60)
