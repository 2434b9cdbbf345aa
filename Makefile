# Needs Python 3.11 or newer, pip and make; nothing else.
PYTHON ?= python3
BIN := .venv/bin
# --no-emit-*: a lock names packages and hashes, not where this machine gets them from
COMPILE := $(BIN)/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras \
	--no-emit-index-url --no-emit-find-links --no-emit-trusted-host

# or each of the dozens of processes that a target starts would compile all of the project anew
export PYTHONDONTWRITEBYTECODE =

.DEFAULT_GOAL := help
PARALLEL := -n 3 --dist worksteal
SLOW := --hypothesis-profile full -m "slow or property"

.PHONY: help up lint types style check test tests-without-database tests-not-slow test-all test-browser conformance docs bench chaos fuzz client client-typescript lock clean install install-dev python

help:  ## list the targets
	@grep -E '^[a-z-]+:.*  ## ' $(MAKEFILE_LIST) | sed -e 's/:.*  ## /\t/' | expand -t 19

up: install  ## start everything: PostgreSQL, Valkey, web, worker and MCP, on http://127.0.0.1:8002
	@exec $(BIN)/python -m memory_project.up

lint: install-dev  ## format, lint, spelling, import order, types and links of the documentation
	@# types take as long as all else, and one processor
	@$(MAKE) --no-print-directory --jobs 2 types style

types:
	$(BIN)/mypy

style:
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/codespell
	$(BIN)/lint-imports
	$(BIN)/mkdocs build --strict --quiet

check: install-dev  ## answer in under three minutes: lint, and the tests that need no database
	@$(MAKE) --no-print-directory --jobs 2 types tests-without-database

test: install-dev  ## the gate, on servers of its own: lint, and every test that is not slow
	@# types take one processor, and tests wait half of their time
	@$(MAKE) --no-print-directory --jobs 2 types tests-not-slow

tests-without-database: style
	$(BIN)/pytest $(PARALLEL) --hypothesis-profile quick -m "not slow and not database"

tests-not-slow: style
	$(BIN)/pytest $(PARALLEL) --hypothesis-profile quick -m "not slow"

test-all: install-dev  ## the rest: slow tests (kills, outages, growth, memory), and property tests at full length
	@# what fails beside others runs once more, alone: it may have waited for a machine that stood still
	$(BIN)/pytest $(PARALLEL) $(SLOW) || \
		{ test $$? -eq 1 && $(BIN)/pytest -n 0 $(SLOW) --last-failed --last-failed-no-failures none; }

test-browser: install-dev  ## do the tasks of staff in chromium and walk all pages: errors, overflow, accessibility; ARGS=--screenshots
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
		$(BIN)/playwright install chromium
	$(BIN)/pytest $(PARALLEL) --hypothesis-profile quick tests/browser $(ARGS)

conformance: install-dev  ## run the conformance suite of MCP on the MCP server; needs npm
	$(BIN)/pytest --hypothesis-profile quick tests/integrations/mcp_conformance $(ARGS)

docs: install-dev  ## build the documentation as a site in site/; broken links are errors
	$(BIN)/mkdocs build --strict --quiet

bench: install-dev  ## print what the service costs over raw Redis and SQL, on servers of its own
	$(BIN)/python -m tests.servers manage.py bench --migrate $(ARGS)

chaos: install-dev  ## hold crowds of slow clients, stop servers, and measure what others notice, on servers of its own
	$(BIN)/python -m tests.servers manage.py chaos --migrate $(ARGS)

fuzz: install-dev  ## send broken bytes for a minute, and generated requests to every operation; EXAMPLES=20 of each, ARGS of chaos
	$(BIN)/python -m tests.servers manage.py chaos --migrate malformed --seconds 60 $(ARGS)
	MEMORY_FUZZ_EXAMPLES=$(or $(EXAMPLES),20) $(BIN)/pytest $(PARALLEL) tests/memory/api/test_contract_fuzz.py

client: install-dev  ## write the tables of the clients anew from the OpenAPI document
	$(BIN)/python -m tests.servers manage.py spectacular --format openapi-json --file .openapi.json
	$(BIN)/python clients/python/src/agent_memory_client/generate.py .openapi.json
	$(BIN)/python clients/typescript/generate.py operations
	rm .openapi.json

client-typescript: client  ## write the types of the TypeScript client anew as well; needs Node with npm
	$(BIN)/python -m tests.servers manage.py spectacular --format openapi-json --file .openapi.json
	$(BIN)/python clients/typescript/generate.py document .openapi.json
	cd clients/typescript && npm ci --ignore-scripts --no-audit --no-fund && npm run types
	rm .openapi.json clients/typescript/.document.json

lock: install-dev  ## resolve pyproject.toml into the two locks again
	$(COMPILE) --output-file requirements.lock pyproject.toml
	$(COMPILE) --extra dev --constraint requirements.lock --output-file requirements-dev.lock pyproject.toml

clean:  ## remove what the other targets made, but never the data
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -not -path './.data/*' -prune -exec rm -rf {} +

install: python
	@$(PYTHON) -I memory_project/install.py requirements.lock

install-dev: python
	@$(PYTHON) -I memory_project/install.py requirements-dev.lock

python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "Python 3.11 or newer is needed; $(PYTHON) is not one. Set PYTHON to one: make up PYTHON=python3.11" >&2; \
		exit 1; }
