# `make demo` and `make test` work on a fresh checkout: each creates .venv and installs into it.
PYTHON ?= python3
BIN := .venv/bin

# a file stays with one process: its fixtures are made once
PYTEST := $(BIN)/pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder tests src/enfa

.PHONY: demo test test-some test-others test-all lint docs clean
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

clean:
	rm -rf .venv
