# The two main commands are `make demo` and `make test`. Each prepares its own .venv in a new clone.
PYTHON ?= python3
BIN := .venv/bin

# one BLAS thread for each of the two test workers
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
PYTEST := $(ONE_THREAD) $(BIN)/pytest -q -n 2
# tests start many processes, each of which would compile all modules again
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo experiment experiments test test-all test-numerics test-times engines package faults kills fuzz bench docs linkcheck lint size fresh clean

demo: .venv/.run
	$(BIN)/corank demo

test: lint .venv/.kernels .venv/.browser .venv/.axe
	$(PYTEST)

# all tests, and kills of every writer; tests on real data if CORANK_DATA names its folder
test-all: lint .venv/.kernels .venv/.browser .venv/.axe
	$(PYTEST) -m "not engines"
	$(MAKE) kills

# processor seconds of each folder and file of make test, the slowest first
test-times: .venv/.kernels
	$(PYTEST) --processor-time --junit-xml=.venv/times.xml && $(BIN)/python tests/slowest_files.py .venv/times.xml

# exported models and fusions in real search engines, one at a time; Java and Maven bring them (200 MB, once), and what is
# missing is skipped with a sentence. Writes the table of docs/experiments/engines.md
engines: .venv/.kernels
	CORANK_ENGINES_TABLE=1 $(ONE_THREAD) $(BIN)/pytest -q -m engines tests/engines

# build wheel and source distribution, install the wheel in a new environment and run the README's blocks there
package: | $(BIN)/python
	$(BIN)/python tests/install_wheel.py

# a sample of the tests whose results depend on BLAS, with the kernels of another processor: other last bits, other
# signs of eigenvectors
NUMERICAL := corank/base/kernels corank/base/solvers corank/models/gp corank/models/linear corank/models/pursuit \
	corank/models/rls identities laws
test-numerics: .venv/.kernels
	core=$$($(BIN)/python tests/other_core_type.py) && echo "OPENBLAS_CORETYPE=$$core" && \
	OPENBLAS_CORETYPE=$$core $(PYTEST) --every 4 $(NUMERICAL:%=tests/%)

# lines and modules of each folder beside the budget in CONTRIBUTING.md
size:
	@$(PYTHON) .ci/size.py

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# run one experiment in full, store its results and fill its page: make experiment NAME=lcra, or with REPEATS=3;
# without NAME, the experiments are listed with the time of the stored run
experiment: .venv/.dev
	$(BIN)/python -m experiments $(if $(NAME),$(NAME) --store $(if $(REPEATS),--repeats $(REPEATS)),--list)

# the same for all experiments; a second run continues. It prints an estimate of the time of each first
experiments: .venv/.dev
	$(BIN)/python -m experiments all --store

# kills every writer before each of its steps and at random times; make test does a few of these
faults: .venv/.kernels
	$(ONE_THREAD) $(BIN)/pytest -q -m "" tests/faults
	$(MAKE) kills

kills: .venv/.kernels
	for killed in kill kill_screen kill_prefer kill_server; do \
		$(ONE_THREAD) PYTHONPATH=.:tests $(BIN)/python tests/faults/$$killed.py --kills 200 || exit 1; done

# all benchmarks; their figures are appended to benchmarks/history
bench: .venv/.bench
	for path in benchmarks/bench_*.py; do name=$${path#benchmarks/bench_}; \
		$(BIN)/python benchmarks/record.py $${name%.py} || exit 1; done

# the site, in docs/_build/html; warnings are errors. Generated pages are deleted first, since pages of removed names warn
docs: .venv/.docs
	rm -rf docs/api/generated docs/_build
	$(ONE_THREAD) $(BIN)/sphinx-build -q -W --keep-going -d docs/_build/doctrees docs docs/_build/html
	@echo 'open docs/_build/html/index.html'

# checks external links; needs the network
linkcheck: .venv/.docs
	$(BIN)/sphinx-build -q -W --keep-going -D plot_gallery=0 -b linkcheck -d docs/_build/doctrees docs docs/_build/linkcheck

# fuzz every reader; failing inputs are kept in fuzz/corpus and become tests. FORMATS=model chooses some, and
# COUNT=100000 tries that many files of each instead of a time
MINUTES ?= 10
fuzz: .venv/.kernels
	$(ONE_THREAD) $(BIN)/python -m fuzz $(FORMATS) $(if $(COUNT),--count $(COUNT),--minutes $(MINUTES))

# delete compiled kernels: numba does not notice changes in other files that a kernel calls
fresh:
	find src -name '*.nb[ci]' -delete

clean:
	rm -rf .venv

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo 'corank needs Python 3.11 or newer; run make PYTHON=/path/to/python3.11 ...'; exit 1; }
	$(PYTHON) -m venv .venv

.venv/.run: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[report]'
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

# the tests of report pages need a browser; install it if possible
.venv/.browser: | $(BIN)/python
	@for name in chromium chromium-browser google-chrome; do command -v $$name >/dev/null && touch $@ && exit 0; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo 'installing chromium, for the tests of report pages'; \
		apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null 2>&1 || \
		{ apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core; } >/dev/null 2>&1; \
	fi; \
	if command -v chromium >/dev/null; then touch $@; else \
		echo 'no browser: install chromium, or the tests of report pages in a browser are skipped'; fi

# axe checks pages for accessibility; it is used by tests only
.venv/.axe: | $(BIN)/python
	@if command -v npm >/dev/null && cd .venv && npm pack --silent axe-core >/dev/null 2>&1; then \
		mkdir -p axe && tar -xzf axe-core-*.tgz -C axe && touch .axe; else \
		echo 'no npm: the tests of accessibility are skipped'; fi

.venv/.kernels: $(wildcard src/corank/core/*.py src/corank/core/*/*.py) | .venv/.dev
	$(MAKE) fresh
	touch $@
