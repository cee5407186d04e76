# `make demo` and `make test` are all a new machine needs: Python 3.11+, a C++
# compiler and PyPI. Both work in an environment of their own (.venv).

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

.PHONY: demo test test-all lint bench clean

demo: $(VENV)/.installed
	$(BIN)/python examples/demo.py

test: lint
	$(BIN)/python -m pytest

test-all: lint
	$(BIN)/python -m pytest -m ""

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/mypy

bench: $(VENV)/.installed
	$(BIN)/python benchmarks/run.py

$(VENV)/.installed: pyproject.toml CMakeLists.txt $(wildcard native/*)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "branchwise needs Python 3.11 or later")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
