"""Parts of the campaign of messages at random, and that no path of them is opened."""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzz import messages


@pytest.fixture(autouse=True)
def _no_file_is_opened_elsewhere(monkeypatch, tmp_path):
    """Fail where a path of a message is opened, or a file written."""
    opened = Path.open

    def guarded(self, *args, **kwargs):
        assert "passwd" not in str(self)
        return opened(self, *args, **kwargs)

    monkeypatch.setattr(Path, "open", guarded)
    monkeypatch.chdir(tmp_path)
    yield
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seed", [0, 1])
def test_two_hundred_messages_at_random(seed):
    told = messages.run(seed, 100)
    assert min(told.values()) > 15, told


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 22))
def test_ten_thousand_messages_at_random(seed):
    told = messages.run(seed, messages.SESSION)
    assert min(told.values()) > 75, told
