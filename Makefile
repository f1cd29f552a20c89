# Two commands for everybody: `make demo` and `make test`. Each prepares its own .venv in a new clone.
PYTHON ?= python3
BIN := .venv/bin

# one thread for BLAS: two workers on two cores would only wait for each other
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
PYTEST := $(ONE_THREAD) $(BIN)/pytest -q -n 2

.PHONY: demo experiment test test-all test-numerics faults kills fuzz bench docs linkcheck lint fresh clean

demo: .venv/.run
	$(BIN)/corank demo

test: lint .venv/.kernels .venv/.browser
	$(PYTEST)

# every test, and every writer killed; tests on real data where CORANK_DATA names its folder
test-all: lint .venv/.kernels .venv/.browser
	$(PYTEST) -m ""
	$(MAKE) kills

# the numerical tests once more, with the BLAS kernels of another processor: other last bits, other signs of eigenvectors
NOT_NUMERICAL := cli data distributed/test_cluster.py evaluation/compare evaluation/report experiments faults test_examples.py test_fuzz.py \
	test_guides.py
test-numerics: .venv/.kernels
	core=$$($(BIN)/python tests/other_core_type.py) && echo "OPENBLAS_CORETYPE=$$core" && \
	OPENBLAS_CORETYPE=$$core $(PYTEST) tests $(NOT_NUMERICAL:%=--ignore=tests/%)

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# one of the papers' tables on real data: make experiment NAME=lcra; without NAME, the names are listed
experiment: .venv/.dev
	$(BIN)/python -m experiments $(NAME)

# every writer killed before each of its steps and at random times; the tests take a few of those
faults: .venv/.kernels
	$(ONE_THREAD) $(BIN)/pytest -q -m "" tests/faults
	$(MAKE) kills

kills: .venv/.kernels
	for killed in kill kill_screen kill_ask; do \
		$(ONE_THREAD) PYTHONPATH=.:tests $(BIN)/python tests/faults/$$killed.py --kills 200 || exit 1; done

# all benchmarks; their figures are appended to benchmarks/history
bench: .venv/.bench
	for path in benchmarks/bench_*.py; do name=$${path#benchmarks/bench_}; \
		$(BIN)/python benchmarks/record.py $${name%.py} || exit 1; done

# the site, into docs/_build/html; any warning is an error. Pages of names that are gone would be one: they are made anew
docs: .venv/.docs
	rm -rf docs/api/generated docs/_build
	$(ONE_THREAD) $(BIN)/sphinx-build -q -W --keep-going -d docs/_build/doctrees docs docs/_build/html
	@echo 'open docs/_build/html/index.html'

# asks the network whether addresses of others are still there
linkcheck: .venv/.docs
	$(BIN)/sphinx-build -q -W --keep-going -D plot_gallery=0 -b linkcheck -d docs/_build/doctrees docs docs/_build/linkcheck

# hostile files against every reader for so long; what fails is kept in fuzz/corpus and is then a test
MINUTES ?= 10
fuzz: .venv/.kernels
	$(ONE_THREAD) $(BIN)/python -m fuzz --minutes $(MINUTES)

# forget compiled kernels: numba looks at the file of a kernel, not at those of the functions it calls
fresh:
	find src -name '*.nb[ci]' -delete

clean:
	rm -rf .venv

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo 'corank needs Python 3.11 or newer; run make PYTHON=/path/to/python3.11 ...'; exit 1; }
	$(PYTHON) -m venv .venv

.venv/.run: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[trees]'
	touch $@

.venv/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[test,dev]'
	touch $@

.venv/.docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	touch $@

.venv/.bench: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	touch $@

# pages of reports are looked at in a real browser: it is installed where we may, and else named
.venv/.browser: | $(BIN)/python
	@for name in chromium chromium-browser google-chrome; do command -v $$name >/dev/null && touch $@ && exit 0; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo 'installing chromium, for the tests of report pages'; \
		apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null 2>&1 || \
		{ apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core; } >/dev/null 2>&1; \
	fi; \
	if command -v chromium >/dev/null; then touch $@; else \
		echo 'no browser: install chromium, or the tests of report pages in a browser are skipped'; fi

.venv/.kernels: $(wildcard src/corank/core/*.py src/corank/core/*/*.py) | .venv/.dev
	$(MAKE) fresh
	touch $@
