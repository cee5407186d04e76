"""Print pip constraints: the lowest version of every dependency that is allowed.

``make test-lowest`` runs the main part of the tests with these.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

#: Extras whose packages the tests run with. Spark has tests of its own.
_EXTRAS = ("dev", "dask", "excel", "onnx", "plot", "sql")
#: Tools that read the code, or drive a browser, and do not run with it.
_TOOLS = {"basedpyright", "codespell", "mypy", "playwright", "pre-commit", "ruff"}


def lowest(project: dict[str, object]) -> dict[str, str]:
    """Return the lowest version of each package, by name."""
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"], *(line for e in _EXTRAS for line in extras[e])]
    found: dict[str, str] = {}
    for line in lines:
        name, version = re.sub(r"\[.*\]", "", line).split(">=")
        if found.setdefault(name, version) != version:
            raise SystemExit(f"pyproject.toml has two lowest versions of {name}")
    return {name: found[name] for name in sorted(found) if name not in _TOOLS}


def main() -> None:
    project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]
    for name, version in lowest(project).items():
        sys.stdout.write(f"{name}=={version}\n")


if __name__ == "__main__":
    main()
