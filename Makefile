# `make` alone lists the targets. Set-up happens by itself, and again only when what it installs has changed.

VENV ?= .venv
BIN := $(VENV)/bin
export VENV

# Real public files for the tests marked `real`; they lie outside the project.
ifneq ($(wildcard ../shared/data),)
export FABRICTUNE_REAL_DATA ?= $(abspath ../shared/data)
endif

INSTALL_INPUTS := pyproject.toml constraints.txt CMakeLists.txt $(wildcard setup/*) \
    $(shell find netsim/engine topology/fairness_engine -name '*.[ch]pp' -o -name '*.inl')

.PHONY: help demo test lint stubs reference sanitize mutants fuzz kills bigfiles chaos check bench wheel wheels site conformance clean

help:  ## List the targets
	@sed -n 's/^\([a-z]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 8

demo: $(VENV)/installed  ## Install, then show the whole suite on a sample, and write its page
	$(BIN)/fabrictune demo

test: $(VENV)/installed-for-tests  ## Install with everything the tests use, then run them all
	$(BIN)/python -m pytest

lint: $(VENV)/installed-for-tests  ## Format, style, types, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/clang-format --dry-run -Werror $(shell find netsim/engine topology/fairness_engine -name '*.[ch]pp' -o -name '*.inl')
	$(BIN)/lint-imports
	$(BIN)/mypy

stubs: $(VENV)/installed-for-tests  ## Write the type stubs of the compiled modules
	setup/stubs.sh

sanitize: $(VENV)/installed-for-tests  ## Run the engines under AddressSanitizer and UBSan
	setup/sanitize.sh

mutants: $(VENV)/installed-for-tests  ## Try mutants of the core areas against their tests (SAMPLE=200 SEED=0)
	nice $(BIN)/python -m tests.mutants --sample $(or $(SAMPLE),200) --seed $(or $(SEED),0)

fuzz: $(VENV)/installed-for-tests  ## Give each command that reads damaged files (INPUTS=100000 SEED=0)
	$(BIN)/python -m tests.fuzz --inputs $(or $(INPUTS),100000) --seed $(or $(SEED),0)

kills: $(VENV)/installed-for-tests  ## Kill each command that writes 200 times, and look at what it leaves
	$(BIN)/python -m tests.kills

chaos: $(VENV)/installed-for-tests  ## Disturb a job of eight ranks 500 times (RUNS=500 SEED=0 OUT=chaos); goes on where it was
	$(BIN)/python -m tests.chaos --runs $(or $(RUNS),500) --seed $(or $(SEED),0) --out $(or $(OUT),chaos)

bigfiles: $(VENV)/installed-for-tests  ## Give 50 MB of each format to the command that reads it (MB=50)
	$(BIN)/python -m tests.big_files --megabytes $(or $(MB),50)

check: lint test sanitize  ## Everything a change must pass

bench: $(VENV)/installed-for-tests  ## Time the benchmarks into benchmarks/results.json
	$(BIN)/python -m benchmarks.run

wheel: $(VENV)/installed  ## Build dist/*.whl, which installs without a compiler
	setup/wheel.sh

wheels: $(VENV)/installed  ## Build what is released into dist/: wheels tried without a compiler, sources, bill of materials
	setup/wheels.sh

site: $(VENV)/installed-for-tests  ## Build the documentation site into build/site; reads without a network
	$(BIN)/python -m docs.site

conformance: $(VENV)/installed-for-tests  ## Run the published cases into build/conformance.json, which the site shows
	mkdir -p build
	$(BIN)/fabrictune conformance --quiet --json >build/conformance.json

reference: $(VENV)/installed  ## Write docs/reference from the schemas in the code
	$(BIN)/python -m fabrictune.foundation.run_tables.reference_page
	$(BIN)/python -m fabrictune.foundation.finding_rules.reference_page
	$(BIN)/python -m fabrictune.cc.reference_page

clean:  ## Remove everything that was built or installed here
	rm -rf $(VENV) build dist

$(VENV)/installed: $(INSTALL_INPUTS)
	setup/install.sh

$(VENV)/installed-for-tests: $(INSTALL_INPUTS)
	setup/install.sh tests
