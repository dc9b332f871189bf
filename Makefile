# `make test` is the whole check, from a fresh clone: it needs Python 3.11+, make and PyPI, nothing else.

PYTHON ?= python3
PYTEST_ARGS ?=

VENV  := .venv
BIN   := $(VENV)/bin
STAMP := $(VENV)/.installed

# $(call section,title,command): says what runs, and how long it took.
define section
	@printf '==> %s\n' '$(1)'; start=$$(date +%s); $(2) && printf '    %ss\n' "$$(($$(date +%s) - start))"
endef

.DEFAULT_GOAL := help
.PHONY: help test lint format bench clean

help: ## Show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 10

test: $(STAMP) ## Check everything: lint, format, types, imports, and all tests in parallel
	@$(MAKE) --no-print-directory lint
	$(call section,pytest,$(BIN)/python -m pytest -q -n logical --maxprocesses 8 --dist worksteal $(PYTEST_ARGS))

lint: $(STAMP) ## Check lint, format, types and the direction of imports
	$(call section,ruff check,$(BIN)/ruff check --quiet .)
	$(call section,ruff format,$(BIN)/ruff format --quiet --check . || { $(BIN)/ruff format --diff . ; false; })
	$(call section,mypy,$(BIN)/mypy --no-error-summary)
	$(call section,import-linter,$(BIN)/lint-imports --no-logo)

format: $(STAMP) ## Format the code and fix what lint can fix
	@$(BIN)/ruff check --quiet --fix . ; $(BIN)/ruff format .

bench: $(STAMP) ## Measure against peers; writes bench/results.json
	@$(BIN)/python -m bench

clean: ## Remove the environment, caches and builds
	rm -rf $(VENV) bench/.venvs dist build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): pyproject.toml
	$(call section,python,$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Ostinato needs Python 3.11 or newer; set PYTHON=... (this one is " + sys.version.split()[0] + ")")')
	$(call section,venv,$(PYTHON) -m venv $(VENV))
	$(call section,install,$(BIN)/python -m pip install -qq --disable-pip-version-check --no-input -e '.[dev]')
	@touch $@
