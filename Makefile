# Every command a person types. Each sets up what it needs by itself, from the lock files, and is quick when run again.

VENV := .venv
PYTHON ?= python3
BIN := $(VENV)/bin

.PHONY: serve test benchmark fuzz openapi lock container clean
.DEFAULT_GOAL := help

help:
	@echo "make serve      set up, migrate and serve on 127.0.0.1:8000 (settings: STALLBUDGET_*, see README.md)"
	@echo "make test       set up and run every check"
	@echo "make benchmark  measure, and write benchmarks/README.md"
	@echo "make fuzz       read changed documents for SECONDS (60), in the order of SEED"
	@echo "make container  check docker-compose.yml and replay the Dockerfile's install commands"
	@echo "make openapi    write openapi/openapi.json anew"
	@echo "make lock       resolve the lock files anew (needs uv)"

serve: $(VENV)/.serve
	@$(BIN)/stallbudget serve

test: $(VENV)/.test
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy --no-error-summary
	$(BIN)/lint-imports --no-logo
	$(BIN)/pytest --numprocesses auto --dist loadfile

benchmark: $(VENV)/.test
	$(BIN)/python -m benchmarks

SECONDS ?= 60
fuzz: $(VENV)/.test
	$(BIN)/python -m tests.fuzz --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

openapi: $(VENV)/.serve
	$(BIN)/stallbudget openapi openapi/openapi.json

container: $(VENV)/.test
	$(BIN)/python -m tests.container

lock:
	uv pip compile pyproject.toml -q --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
		-o requirements.txt
	uv pip compile --group build -q --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
		-c requirements.txt -o requirements-build.txt
	uv pip compile pyproject.toml --group dev --group build -q --universal --python-version 3.11 --generate-hashes \
		--no-annotate --no-header -c requirements.txt -o requirements-test.txt

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

# uv where it is there, else venv and pip; both install what the lock file names, and check its digest.
install = if command -v uv >/dev/null 2>&1; \
	then uv pip install --quiet --python $(BIN)/python $(1); \
	else $(BIN)/python -m pip install --quiet --disable-pip-version-check $(1); fi

$(BIN)/python:
	@if command -v uv >/dev/null 2>&1; then uv venv --quiet --seed --python '>=3.11' $(VENV); exit; fi; \
	for python in $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11; do \
		$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
		$$python -c 'import ensurepip, venv' 2>/dev/null || { \
			echo "$$python lacks venv: install it (on Debian and Ubuntu: apt-get install python3-venv), or install uv."; \
			exit 1; }; \
		exec $$python -m venv $(VENV); \
	done; \
	echo "stallbudget needs Python 3.11 or newer: install it, or name it with make PYTHON=/path/to/python3."; exit 1

$(VENV)/.serve: requirements.txt requirements-build.txt pyproject.toml | $(BIN)/python
	@echo "Setting up $(VENV) to serve."
	@$(call install,--require-hashes -r requirements.txt -r requirements-build.txt)
	@$(call install,--no-deps --no-build-isolation --editable .)
	@touch $@

$(VENV)/.test: requirements-test.txt $(VENV)/.serve
	@echo "Setting up $(VENV) to test."
	@$(call install,--require-hashes -r requirements-test.txt)
	@touch $@
