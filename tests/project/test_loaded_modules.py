"""How many modules of branchwise a fit loads: what it does not need stays out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import branchwise

TENNIS = Path(branchwise.__file__).parent / "datasets" / "tables" / "tennis.csv"
COUNT = "print(sum(n.partition('.')[0] == 'branchwise' for n in sys.modules))\n"
ESTIMATOR = (
    "import sys\n"
    "import pandas as pd\n"
    "from branchwise import ID3Classifier\n"
    f"table = pd.read_csv({str(TENNIS)!r})\n"
    "y = table.pop('play tennis')\n"
    "ID3Classifier().fit(table, y)\n"
)
COMMAND = (
    "import sys\n"
    "from branchwise.cli.main import app\n"
    f"app(['fit', {str(TENNIS)!r}, '-t', 'play tennis'], standalone_mode=False)\n"
)


def modules_loaded(code: str) -> int:
    command = [sys.executable, "-c", code + COUNT]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    return int(done.stdout.splitlines()[-1])


def test_an_estimator_loads_at_most_60_modules():
    assert modules_loaded(ESTIMATOR) <= 60


def test_branchwise_fit_loads_at_most_120_modules():
    assert modules_loaded(COMMAND) <= 120


def test_the_version_needs_no_subcommand():
    code = (
        "import sys\n"
        "from branchwise.cli.main import app\n"
        "app(['--version'], standalone_mode=False)\n"
    )
    assert modules_loaded(code) <= 10
