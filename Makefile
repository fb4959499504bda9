# Everything runs in .venv, which the first target that needs it creates. `make help` lists what there is.
# Another interpreter: make test PYTHON=python3.12

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := src tests benchmarks tools
BENCHMARKS := $(sort $(wildcard benchmarks/bench_*.py))

# Tests run in two processes; threads inside each of them would only stand in one another's way.
test test-slow test-search: export OMP_NUM_THREADS = 1
test test-slow test-search: export OPENBLAS_NUM_THREADS = 1

PIP := -m pip install --quiet --disable-pip-version-check
# Environments of their own, and what is installed in each.
DOWHY := dist/dowhy
FLOWER := dist/flower
ENCRYPTED := dist/encrypted
CLUSTERS := dist/clusters
OLDEST := dist/oldest
$(DOWHY)/ready: WANTED = --editable '.[dev]' dowhy
$(FLOWER)/ready: WANTED = --editable '.[flower]' pytest hypothesis
$(ENCRYPTED)/ready: WANTED = --editable '.[encrypted]' pytest hypothesis
$(CLUSTERS)/ready: WANTED = --editable '.[dask,ray,parallel]' pytest hypothesis
$(OLDEST)/ready: WANTED = --constraint .ci/oldest.txt --editable '.[plot,sklearn,graphs,experiments,parallel]' pytest pytest-xdist hypothesis safetensors
ENVIRONMENTS := $(DOWHY) $(FLOWER) $(ENCRYPTED) $(CLUSTERS) $(OLDEST)

.PHONY: help demo test test-slow test-search test-dowhy test-flower test-encrypted test-clusters test-oldest bench bench-small bench-all experiments-quick experiments docs lint format changelog release clean
.DEFAULT_GOAL := help

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-18s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

demo: $(VENV)/runtime ## find the causal graph of a simulated study of five hospitals
	$(BIN)/python -m fedcdh demo

test: lint ## lint, check types, run the tests and print their coverage (the same as continuous integration)
	COVERAGE_CORE=$$($(BIN)/python -c 'import sys; print("sysmon" if sys.version_info >= (3, 12) else "ctrace")') \
	$(BIN)/python -m pytest -n 2 -m "not slow" --cov --cov-report= -p tools.coverage_summary

test-slow: $(VENV)/development ## run the statistical suites that take minutes
	$(BIN)/pytest -n 2 -m slow

test-search: $(VENV)/development ## run the tests with new random examples (make test repeats the same ones)
	HYPOTHESIS_PROFILE=search $(BIN)/pytest -n 2 -m "not slow"

test-dowhy: $(DOWHY)/ready ## run the round trips of exports, and effects, with DoWhy, in an environment of its own: it holds scipy back
	$(DOWHY)/bin/pytest tests/graphs/convert tests/docs/test_exports_page.py tests/discovery/test_effect_dowhy.py

test-flower: $(FLOWER)/ready ## run online studies over Flower on the loopback, in an environment of its own: it holds typer back
	$(FLOWER)/bin/pytest -W ignore::DeprecationWarning tests/federation/flower

test-encrypted: $(ENCRYPTED)/ready ## run the sums under homomorphic encryption, in an environment of its own: TenSEAL is built for few Pythons
	$(ENCRYPTED)/bin/pytest tests/privacy/test_homomorphic.py

test-clusters: $(CLUSTERS)/ready ## run summaries on clusters of two worker processes, in an environment of its own: Ray is large
	PYTHONPATH=$(CURDIR)/tests/support $(CLUSTERS)/bin/pytest tests/data/clusters

test-oldest: $(OLDEST)/ready ## run the tests with the oldest libraries that pyproject.toml admits (.ci/oldest.txt, Python 3.11)
	$(OLDEST)/bin/pytest -n 2 -m "not slow" -W ignore::DeprecationWarning -W ignore::FutureWarning

bench: $(VENV)/development ## measure how cost grows, beside peers and the machine's limits, and write docs/scale.md (half an hour or more)
	$(BIN)/python $(PIP) --editable '.[dev,ray]'
	$(BIN)/python -m benchmarks.bench_scale

bench-small: $(VENV)/development ## a few ratios in a minute: what continuous integration prints
	$(BIN)/python -m benchmarks.bench_scale small

bench-all: $(VENV)/development ## run every benchmark there is, accuracy and calibration too (hours)
	$(BIN)/python $(PIP) --editable '.[dev,ray]'
	@test -n "$(BENCHMARKS)" || { echo "there is no benchmarks/bench_*.py to run"; exit 1; }
	@for file in $(BENCHMARKS); do $(BIN)/python -m "benchmarks.$$(basename $$file .py)" || exit 1; done

experiments-quick: $(VENV)/development ## repeat a small version of every experiment of the paper, with its baselines
	$(BIN)/python -m fedcdh experiment all --quick --workers 2 -o dist/experiments/results
	$(BIN)/python -m fedcdh experiment page --quick -o dist/experiments/results

experiments: $(VENV)/development ## repeat all of them in full (hours), and write docs/results.md
	$(BIN)/python -m fedcdh experiment all --workers 2 -o docs/results
	$(BIN)/python -m fedcdh experiment page -o docs/results

docs: $(VENV)/development ## build the documentation into dist/docs, without a warning
	$(BIN)/python $(PIP) --editable '.[dev,docs]'
	$(BIN)/python -m sphinx -W --keep-going -q docs dist/docs
	@echo "open dist/docs/index.html"

lint: $(VENV)/development ## check style, types, layers, docstrings and spelling
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports --cache-dir .import_linter_cache
	$(BIN)/python tools/check_docstrings.py
	$(BIN)/codespell tests benchmarks
	$(BIN)/codespell --dictionary - --dictionary tools/british_spelling.txt src docs tools .github changelog.d *.md

format: $(VENV)/development ## format the sources
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

changelog: $(VENV)/release ## show what the next version's section of CHANGELOG.md would be
	$(BIN)/towncrier build --draft --version $$($(BIN)/python -c 'from importlib.metadata import version; print(version("fedcdh"))')

release: $(VENV)/release ## build wheel and sdist, check them, install the wheel in an empty environment and run the demo there
	rm -rf dist/release
	$(BIN)/python -m build --outdir dist/release
	$(BIN)/python -m twine check --strict dist/release/*
	$(PYTHON) -m venv dist/release/empty
	dist/release/empty/bin/python $(PIP) dist/release/*.whl
	cd dist/release && empty/bin/fedcdh --version && empty/bin/fedcdh demo --output demo
	@ls -l dist/release

clean: ## remove the environments and all caches
	rm -rf $(VENV) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage .coverage.*
	find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "found no $(PYTHON); install Python 3.11 or newer, or name one: make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "found $$($(PYTHON) --version 2>&1), expected Python 3.11 or newer; name another: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# A stamp is older than pyproject.toml when what is installed may no longer be what is asked for.
$(VENV)/runtime: pyproject.toml | $(BIN)/python
	$(BIN)/python $(PIP) --editable .
	@touch $@

$(VENV)/development: pyproject.toml | $(BIN)/python
	$(BIN)/python $(PIP) --editable '.[dev]'
	@touch $@ $(VENV)/runtime

$(VENV)/release: pyproject.toml | $(BIN)/python
	$(BIN)/python $(PIP) --editable '.[release]'
	@touch $@

# An environment that an earlier, interrupted or other Python left behind is made anew.
$(ENVIRONMENTS:%=%/ready): pyproject.toml | $(BIN)/python
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/python $(PIP) $(WANTED)
	@touch $@
