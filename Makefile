# Every target but `help` and `clean` works in .venv, which is built from requirements.lock when it is missing or outdated.
SHELL := /bin/sh
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOCKED := $(VENV)/.locked
STAMP := $(VENV)/.built
BENCHED := $(VENV)/.benched
TOOLED := $(VENV)/.tooled
PYTEST_ARGS ?=
AUDIT_ARGS ?=
BENCH_ARGS ?=
# How many tests run at once: twice as many as two cores have, since many wait for brokers; 0 runs all in turn.
TEST_WORKERS ?= 4
# How long each target of `make fuzz` runs, and which ones; all when none is named.
FUZZ_SECONDS ?= 60
FUZZ_TARGETS ?=
CODE := deploy detectors docs schemas streams tests traction.py

# Hundreds of processes start in the tests: none of them has to compile the code again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup setup-bench demo test test-tools matrix fuzz torture bench recordings check audit lint format typecheck lock clean

help: ## Show what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## Build .venv: locked dependencies and the traction command; fetch the broker's jars and ready Java for them

$(LOCKED): requirements.lock
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and "make: Traction needs Python 3.11 or newer, and $(PYTHON) is %d.%d; say: make PYTHON=python3.11 (or newer)" % v[:2])'
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "make: $(PYTHON) cannot build environments; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@touch $@

$(STAMP): $(LOCKED) pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m streams.kafka_broker || echo "make: going on without the broker's jars; they are fetched when it is first started" >&2
	@touch $@

$(BENCHED): $(STAMP) requirements-bench.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-bench.lock
	@touch $@

$(TOOLED): $(BENCHED) requirements-tools.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-tools.lock
	@touch $@

setup-bench: $(BENCHED) ## Add to .venv what `bench` and `test-tools` need

demo: $(STAMP) ## Play recorded agent sessions through a broker, a worker and the escalation consumer
	$(BIN)/traction demo

test: $(STAMP) ## Run the tests, on the broker that TRACTION_TEST_KAFKA names or else on one of their own
	$(BIN)/python -m pytest -m "not tools" --numprocesses $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder \
		$(PYTEST_ARGS)

test-tools: $(TOOLED) ## Run the tests that need other tools; installs these as root where they are missing
	tests/tools/install.sh
	$(BIN)/python -m pytest -m tools --numprocesses 2 --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS)

matrix: $(STAMP) ## Compare the ladder of responses with its plain model, the long form (about ten minutes)
	TRACTION_MATRIX_EXAMPLES=20000 $(BIN)/python -m pytest --timeout 3600 tests/streams/escalation/test_ladder_matrix.py $(PYTEST_ARGS)

fuzz: $(STAMP) ## Fuzz all that is read, coverage-guided, a minute a target (FUZZ_SECONDS, FUZZ_TARGETS)
	$(BIN)/python -m tests.fuzz.drive --seconds $(FUZZ_SECONDS) $(FUZZ_TARGETS)

torture: $(STAMP) ## Kill, freeze and cut everything and compare with an oracle, for an hour (TORTURE_MINUTES, TORTURE_SEED)
	TORTURE_MINUTES=$${TORTURE_MINUTES:-60} TORTURE_SEED=$${TORTURE_SEED:-$$(date +%s)} \
		$(BIN)/python -m pytest tests/torture/test_torture.py $(PYTEST_ARGS)

bench: $(BENCHED) ## Compare the worker with a bare loop, a Faust agent and Quix Streams, on one load (BENCH_ARGS='--help')
	$(BIN)/python -m tests.bench.engines $(BENCH_ARGS)

recordings: $(STAMP) ## Score the detectors on the recorded sessions in the folder that TRACTION_RECORDINGS names
	$(BIN)/python tests/recordings/check.py

check: lint typecheck ## Check style, format, types, import rules and that generated files are up to date
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m pip check --disable-pip-version-check
	$(BIN)/python -m schemas.generate --check
	$(BIN)/python docs/generate.py --check
	$(BIN)/python deploy/generate.py --check
	$(BIN)/python -m schemas.compat

audit: $(STAMP) ## Ask whether a weakness is known of any dependency; the script ends with 75 when it could not be asked, make with 2 (AUDIT_ARGS='--service osv')
	$(BIN)/python -m tests.tools.audit $(AUDIT_ARGS)

lint: $(STAMP) ## Check style and format
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)

format: $(STAMP) ## Set the format and mend what can be mended
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

typecheck: $(STAMP) ## Check types
	$(BIN)/mypy

lock: $(STAMP) ## Remake requirements*.lock and deploy/image/*.lock from pyproject.toml (LOCK_ARGS=--upgrade for newer versions)
	cp requirements.lock $(VENV)/requirements.new
	$(BIN)/uv --no-config pip compile pyproject.toml --extra broker --extra otlp --extra rocksdb --extra train --group dev --universal \
		--python-version 3.11 --generate-hashes --no-annotate --no-header --no-emit-index-url $(LOCK_ARGS) --quiet \
		--output-file $(VENV)/requirements.new
	cmp -s $(VENV)/requirements.new requirements.lock || cp $(VENV)/requirements.new requirements.lock
	cp requirements-bench.lock $(VENV)/bench.new
	$(BIN)/uv --no-config pip compile --group bench --constraint requirements.lock --universal \
		--python-version 3.11 --generate-hashes --no-annotate --no-header --no-emit-index-url $(LOCK_ARGS) --quiet \
		--output-file $(VENV)/bench.new
	cmp -s $(VENV)/bench.new requirements-bench.lock || cp $(VENV)/bench.new requirements-bench.lock
	cp requirements-tools.lock $(VENV)/tools.new
	$(BIN)/uv --no-config pip compile --group tools --constraint requirements.lock --universal \
		--python-version 3.11 --generate-hashes --no-annotate --no-header --no-emit-index-url $(LOCK_ARGS) --quiet \
		--output-file $(VENV)/tools.new
	cmp -s $(VENV)/tools.new requirements-tools.lock || cp $(VENV)/tools.new requirements-tools.lock
	$(BIN)/uv --no-config pip compile pyproject.toml --extra otlp --extra rocksdb --constraint requirements.lock --universal \
		--python-version 3.11 --generate-hashes --no-annotate --no-header --no-emit-index-url --quiet \
		--output-file deploy/image/run.lock
	echo hatchling | $(BIN)/uv --no-config pip compile - --constraint requirements.lock --universal \
		--python-version 3.11 --generate-hashes --no-annotate --no-header --no-emit-index-url --quiet \
		--output-file deploy/image/build.lock
	for name in claude-agent-sdk langchain openai-agents openhands pydantic-ai smolagents; do \
		version=3.11; [ $$name != openhands ] || version=3.12; \
		$(BIN)/uv --no-config pip compile pyproject.toml --extra $$name --universal --python-version $$version \
			--generate-hashes --no-annotate --no-header --no-emit-index-url $(LOCK_ARGS) --quiet \
			--output-file tests/adapters/locks/$$name.lock || exit 1; \
	done

clean: ## Remove .venv and what tools leave behind
	rm -rf $(VENV) build dist .fuzz .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
