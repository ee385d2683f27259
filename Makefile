# Two commands: `make demo` and `make test`. Both do all their own set-up.

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
DEMO := .demo
DATA ?= ../shared/data

.PHONY: help demo test check bench-recall bench-ask soak soak-store hostile wheel clean

help:
	@echo "make demo          install, index the sample documents, answer four questions with their sources"
	@echo "make test          install everything needed and run all tests"
	@echo "make check         formatter, linter, types, import floors"
	@echo "make bench-recall  recall on the development sets in DATA=$(DATA), against the floors"
	@echo "make bench-ask     answers of the local model on the development sets (hours on two cores)"
	@echo "make soak          the long ordeals of indexing with the real model: faults, kills, cost (hours on two cores)"
	@echo "make soak-store    the long ordeals of the store: 1,000 kills, every fault, 1,000 programs (hours on two cores)"
	@echo "make hostile       ten thousand hostile inputs at every door (some minutes on two cores)"
	@echo "make wheel         build the wheel and try it in a fresh environment"
	@echo "make clean         remove what the other targets made"

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "EcphoryRAG needs Python 3.11 or later; this is " + sys.version.split()[0] + ". Name another with: make PYTHON=python3.12 demo")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo-installed: pyproject.toml $(VENV)/bin/python
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[local]'
	@touch $@

$(VENV)/.dev-installed: pyproject.toml $(VENV)/bin/python
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(VENV)/.demo-installed

demo: $(VENV)/.demo-installed
	$(PY) -m ecphoryrag model fetch
	$(PY) examples/demo.py --store $(DEMO)/sample.ecphory

test: $(VENV)/.dev-installed
	$(PY) -m ecphoryrag model fetch
	REQUIRE_LOCAL_MODEL=1 $(PY) -m pytest

check: $(VENV)/.dev-installed
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m mypy
	$(VENV)/bin/lint-imports

bench-recall: $(VENV)/.dev-installed
	$(PY) benchmarks/recall_floors.py --data $(DATA)

bench-ask: $(VENV)/.dev-installed
	$(PY) -m ecphoryrag model fetch
	$(PY) benchmarks/ask_dev.py --data $(DATA)

soak: $(VENV)/.dev-installed
	$(PY) -m ecphoryrag model fetch
	$(PY) -m benchmarks.soak --data $(DATA)

soak-store: $(VENV)/.dev-installed
	$(PY) -m benchmarks.durability

hostile: $(VENV)/.dev-installed
	$(PY) -m benchmarks.hostile

wheel: $(VENV)/.dev-installed
	$(PY) -m build --outdir dist .
	$(PY) benchmarks/try_wheel.py dist

clean:
	rm -rf $(VENV) $(DEMO) .soak dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .coverage
