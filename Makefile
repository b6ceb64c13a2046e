# Everything here runs in .venv, which is made on first use from Python 3.11 or newer.
# make demo | test | lint | types | contracts | docs-check | conformance | bench | soak | clean

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS += --no-builtin-rules --no-print-directory
.DEFAULT_GOAL := help

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$p" && break; done)
VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
PIP := $(PY) -m pip install -qq --disable-pip-version-check

# A stamp's name holds a checksum of what it was made from, so that a change makes it anew and nothing else does.
PYTHON_SUM := $(shell $(PYTHON) -VV 2>&1 | cksum | cut -d' ' -f1)
PROJECT_SUM := $(shell cksum < pyproject.toml | cut -d' ' -f1)
NODE_SUM := $(shell cksum < tests/npm/package-lock.json | cut -d' ' -f1)
VENV_STAMP := $(VENV)/.made-$(PYTHON_SUM)
DEMO_STAMP := $(VENV)/.demo-$(PYTHON_SUM)-$(PROJECT_SUM)
TEST_STAMP := $(VENV)/.test-$(PYTHON_SUM)-$(PROJECT_SUM)
NODE_STAMP := tests/npm/node_modules/.made-$(NODE_SUM)
HOSTS := tests/hosts_real
HOSTS_SUM := $(shell cat $(HOSTS)/package.json $(HOSTS)/package-lock.json | cksum | cut -d' ' -f1)
HOSTS_ALL_STAMP := $(HOSTS)/node_modules/.all-$(HOSTS_SUM)
HOSTS_SMALL_STAMP := $(HOSTS)/node_modules/.small-$(HOSTS_SUM)

# Arguments for the program a target runs, as in: make demo ARGS=--serve
ARGS ?=

.PHONY: help demo test lint format types contracts docs-check conformance bench soak test-hosts test-hosts-small clean setup

help:
	@echo "make demo         run the gateway on five example servers and show what it does (ARGS=--serve: stay up)"
	@echo "make test         run the whole test suite"
	@echo "make lint         ruff: rules and format      make format     write that format"
	@echo "make types        mypy --strict               make contracts  import rules"
	@echo "make docs-check   links, references and commands in the documentation"
	@echo "make conformance  the official MCP conformance suite through the gateway, all of it"
	@echo "make bench        measure speed               make soak       long runs: load and bad input"
	@echo "make test-hosts   compare with six real AI hosts, 1.4 GB from npm      make test-hosts-small  with the two smallest"
	@echo "make clean        remove what these made"

$(VENV_STAMP):
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed, and none was found. Name one: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(DEMO_STAMP): $(VENV_STAMP)
	@echo "Setting up $(VENV) (a minute the first time) ..."
	@$(PIP) --editable '.[demo]'
	@touch $@

$(TEST_STAMP): $(VENV_STAMP)
	@echo "Setting up $(VENV) for tests (a minute the first time) ..."
	@$(PIP) --editable '.[test]'
	@touch $@ $(DEMO_STAMP)

# Without Node.js or a package index this leaves no stamp, and the tests that need it are skipped with the reason.
$(NODE_STAMP): | $(TEST_STAMP)
	@PATH="$(CURDIR)/$(BIN):$$PATH"; \
	if (cd tests/npm && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null); then \
		touch $@; \
	else \
		echo "No conformance suite and no MCP inspector: 'npm ci' in tests/npm failed (Node.js 22 or newer is needed)." >&2; \
	fi

setup: $(TEST_STAMP) $(NODE_STAMP)

demo: $(DEMO_STAMP)
	@$(BIN)/interlock demo $(ARGS)

test: setup
	@$(PY) -m pytest -n auto --cov --cov-report=term:skip-covered $(ARGS)

lint: $(TEST_STAMP)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

format: $(TEST_STAMP)
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

types: $(TEST_STAMP)
	@$(BIN)/mypy

contracts: $(TEST_STAMP)
	@$(BIN)/lint-imports

docs-check: setup
	@$(PY) -m pytest -n auto tests/docs $(ARGS)

conformance: setup
	@$(PY) -m tests.conformance.run $(ARGS)
	@$(PY) -m tests.bridge.conformance

bench: setup
	@$(PY) -m benchmarks $(ARGS)
	@$(PY) benchmarks/bridge_start.py
	@$(PY) benchmarks/bridge_situations.py
	@$(PY) benchmarks/bridge_chaos.py
	@$(PY) benchmarks/inventory.py

# The long tests first, then a hundred thousand bad messages, then a million calls. Pytest says 5 where it finds no test.
soak: setup
	@$(PY) -m pytest -m soak --timeout 0 || test $$? -eq 5
	@$(PY) -m tests.badinput.run --count 100000
	@$(PY) benchmarks/soak.py $(ARGS)

# `npm install` and not `npm ci`: the lock file has the platforms' own builds only as far as the index had them where it was
# made. Versions are exact in package.json. Two packages put their program in place by a script, which is run by name.
# With INTERLOCK_TEST_HOSTS (a folder of programs) nothing is installed. Without npm the tests are skipped with the reason.
hosts_install = PATH="$(CURDIR)/$(BIN):$$PATH"; \
	if [ -n "$${INTERLOCK_TEST_HOSTS:-}" ]; then exit 0; fi; \
	if (cd $(HOSTS) && npm install --no-save --ignore-scripts --no-audit --no-fund --loglevel=error $(1) >/dev/null); then \
		$(2) touch $@; \
	else \
		echo "No real hosts: 'npm install' in $(HOSTS) failed (Node.js 22 or newer and a package index are needed)." >&2; \
	fi

$(HOSTS_ALL_STAMP): | $(TEST_STAMP)
	@$(call hosts_install,,(cd $(HOSTS)/node_modules/@anthropic-ai/claude-code && node install.cjs >/dev/null); \
		(cd $(HOSTS)/node_modules/opencode-ai && node postinstall.mjs >/dev/null); touch $(HOSTS_SMALL_STAMP);)

$(HOSTS_SMALL_STAMP): | $(TEST_STAMP)
	@$(call hosts_install,--omit=dev,)

test-hosts: $(HOSTS_ALL_STAMP)
	@$(PY) -m pytest -n auto -m hosts $(HOSTS) $(ARGS)

# Gemini CLI and Qwen Code, 155 MB, in the situations that tell most: about a minute.
test-hosts-small: $(HOSTS_SMALL_STAMP)
	@$(PY) -m pytest -n auto -m "hosts and not hosts_more" $(HOSTS) -k "gemini-cli or qwen-code" $(ARGS)

clean:
	@rm -rf $(VENV) tests/npm/node_modules $(HOSTS)/node_modules build dist htmlcov .coverage .coverage.* .hypothesis \
		.import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
