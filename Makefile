# `make demo` and `make test` work on a fresh checkout: each creates .venv and installs into it.
PYTHON ?= python3
BIN := .venv/bin

# a file stays with one process: its fixtures are made once
PYTEST := $(BIN)/pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder tests src/enfa

.PHONY: demo test test-some test-others test-all test-oldest lint docs clean
demo: .venv/installed
	$(BIN)/enfa demo

# Of tests that draw many cases of one claim, every sixth; the others, and what takes long, are test-others.
test: .venv/installed
	$(MAKE) -j2 lint test-some  # side by side: mypy has one core

test-some: .venv/installed
	$(PYTEST) --cases some

test-others: .venv/installed
	$(PYTEST) --cases others

test-all: test test-others

# With the oldest versions that pyproject.toml allows, in .venv-oldest; what those call deprecated is not ours to mend.
test-oldest: .venv-oldest/installed
	.venv-oldest/bin/pytest -n auto --maxprocesses 4 --dist loadfile -o filterwarnings= tests --cases some

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/mypy

# The site, in site/; a broken link, or a name without a page, is an error.
docs: .venv/installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# torch goes first and alone, so that nothing else pulls in another build of it.
.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt --editable '.[train,report,scale,docs,dev]'
	touch $@

.venv-oldest/installed: pyproject.toml constraints-oldest.txt
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/pip install --quiet --disable-pip-version-check -c constraints-oldest.txt torch
	.venv-oldest/bin/pip install --quiet --disable-pip-version-check -c constraints-oldest.txt --editable '.[train,report,parquet,scale]'
	.venv-oldest/bin/pip install --quiet --disable-pip-version-check -c constraints-oldest.txt pytest pytest-xdist hypothesis psutil rdkit scikit-learn
	touch $@

clean:
	rm -rf .venv .venv-oldest
