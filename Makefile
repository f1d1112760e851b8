# The project's commands. `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEV := $(BIN)/outbox-dev

.PHONY: help install lock generate format check lint types layers fresh unit test e2e demo demo-local mongo kafka cluster images status down clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/.installed: requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; set PYTHON=/path/to/python3"; exit 1; }
	@echo "==> Installing the locked Python packages into $(VENV) (about a minute the first time)"
	@$(PYTHON) -m venv $(VENV) || { echo "The venv module is missing: on Debian, apt-get install python3-venv"; exit 1; }
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

install: $(VENV)/.installed ## Make the virtual environment from the lock

lock: $(VENV)/.installed ## Resolve pyproject.toml into requirements/*.txt with hashes
	@for extra in relay operator dev; do \
	  $(BIN)/uv -q pip compile pyproject.toml --extra $$extra --universal --python-version 3.11 \
	    --generate-hashes --no-header --no-annotate $(if $(UPGRADE),--upgrade) -o requirements/$$extra.txt || exit 1; done

generate: install ## Write the CRD and the field reference from the models
	@$(BIN)/python -m outbox_api.generate

format: install ## Format and fix what can be fixed
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix .

lint: install
	@$(BIN)/ruff format --check . && $(BIN)/ruff check .

types: install
	@$(BIN)/mypy

layers: install
	@$(BIN)/lint-imports

fresh: install
	@$(BIN)/python -m outbox_api.generate --check

check: lint types layers fresh ## Lint, types, layers, generated files

mongo: install ## Start a MongoDB replica set of one node
	@$(DEV) mongo up

kafka: install ## Start a Kafka broker
	@$(DEV) kafka up

cluster: install ## Start a Kubernetes cluster (kind, with or without a Docker engine)
	@$(DEV) cluster up

images: install ## Build the relay and operator images
	@$(DEV) images build

status: install ## Show what runs
	@$(DEV) status

down: install ## End all that was started, and leave nothing behind
	@$(DEV) down

demo-local: install ## Events through a relay as a process; no Kubernetes (about a minute)
	@$(DEV) demo-local

demo: install ## The whole thing: a cluster, the operator, a relay, events, a crash
	@$(DEV) demo

# What decides and does no I/O is covered whole, branches included; the rest by the gate of pyproject.toml.
PURE := */outbox_api/*,*/outbox_relay/encoding/*,*/outbox_relay/events/*,*/outbox_relay/routing/*,*/outbox_relay/render.py,*/outbox_operator/render/*,*/outbox_operator/decision.py,*/outbox_operator/verdict.py

test: check ## All checks, unit and integration tests, coverage gate
	@$(BIN)/pytest --cov --cov-report=term --junitxml=.build/junit-test.xml
	@$(BIN)/coverage report --include='$(PURE)' --fail-under=100

e2e: install ## Tests with real pods on a kind cluster
	@$(BIN)/python -m outbox_dev.e2e --junitxml=.build/junit-e2e.xml $(ARGS)

clean: ## Remove the virtual environment and build results (not the download cache)
	@rm -rf $(VENV) .build
