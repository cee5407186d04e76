"""``python -m branchwise`` is ``branchwise``."""

from branchwise.cli.main import main

if __name__ == "__main__":
    main()
