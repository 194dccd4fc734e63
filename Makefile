# `make evals` and `make test` do all their own set-up, in a virtual environment of their own.

PYTHON ?= python3
VENV ?= .venv
PYTEST ?= $(VENV)/bin/python -m pytest

PIP = $(VENV)/bin/python -m pip --disable-pip-version-check install -qq
CHECKED = pytest_mst tests example_evals example_agents $(wildcard benchmarks)

.NOTPARALLEL:
.PHONY: evals live-evals test check format schemas clean

evals: $(VENV)/examples.stamp
	$(PYTEST) --mst example_evals

# They really write, in folders of their own.
live-evals: $(VENV)/examples.stamp
	$(PYTEST) --mst --allow-live-writes live_evals

test: $(VENV)/dev.stamp
	$(PYTEST) -n 2

check: $(VENV)/dev.stamp
	$(VENV)/bin/ruff check $(CHECKED)
	$(VENV)/bin/ruff format --check $(CHECKED)
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	$(VENV)/bin/python -m pytest_mst schema --write $(VENV)/schemas
	diff -r schemas $(VENV)/schemas

format: $(VENV)/dev.stamp
	$(VENV)/bin/ruff check --fix $(CHECKED)
	$(VENV)/bin/ruff format $(CHECKED)

schemas: $(VENV)/dev.stamp
	$(VENV)/bin/python -m pytest_mst schema --write schemas

clean:
	rm -rf $(VENV) build dist .mst-results .coverage .coverage.*

# Made once; what is installed is refreshed when pyproject.toml changes.
$(VENV)/%.stamp: pyproject.toml | $(VENV)/bin/python
	@echo "Installing pytest-mst[$*] in $(VENV)"
	@$(PIP) --editable '.[$*]'
	@touch $@

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is " + sys.version.split()[0] + ": make PYTHON=/path/to/python3")'
	@$(PYTHON) -m venv $(VENV)
