"""The root of the repository holds no data, which examples run there would leave."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Pages, settings of tools and the licence; files of tools begin with a dot.
KINDS = {".md", ".toml", ".cff"}
NAMES = {"CMakeLists.txt", "LICENSE", "Makefile"}


def unknown_files(folder: Path) -> list[str]:
    """Return the files of a folder that are of no kind known of the root."""
    return sorted(
        path.name
        for path in folder.iterdir()
        if path.is_file()
        and not path.name.startswith(".")
        and path.suffix not in KINDS
        and path.name not in NAMES
    )


def test_root_holds_known_kinds_of_files_only():
    assert unknown_files(ROOT) == []


@pytest.mark.parametrize("name", ["loans.csv", "shop.sqlite", "car.actions.json"])
def test_data_is_of_no_known_kind(name, tmp_path):
    for each in (name, "README.md", "Makefile", ".gitignore"):
        (tmp_path / each).touch()
    assert unknown_files(tmp_path) == [name]
