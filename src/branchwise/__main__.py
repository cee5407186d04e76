"""``branchwise``, also as ``python -m branchwise``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; Ctrl-C while it is being loaded ends it like any other."""
    try:
        from branchwise.cli.main import main as run  # noqa: PLC0415  (takes a while)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
