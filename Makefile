# make demo         the main job on the packaged wages: demo/wages.txt, .png and .json
# make demo-regression   the typical wage by age: demo/wage-by-age.txt, .png and .json
# make test         lint, types and every test, Python and R (as root on Debian, R is installed when it is missing)
# make test-python  lint, types and every test that needs no R
# make test-r       the R package: R CMD check, its tests, and R embedded in Python
# make install-r    the R package into the user's R library
# make test-lower   every test on the lowest supported versions of the libraries
# make docs         the documentation as a site: build/docs/index.html
# make tables       every study of the paper's tables in full, hours; then docs/tables.md and its pictures
# make tables-quick   a few cells of each study, nothing written: under five minutes on two cores
# make audit        attack the privacy guarantee: long audits and fuzzing, an hour; see docs/evidence.md
# make bench        whole fits, then single parts, beside peers in the same run: benchmarks/results/speed.csv, suite.csv
# make bench-suite  single parts alone, some minutes: fails when a ratio to a peer is above its ceiling; see docs/speed.md
# make lint, make format, make clean
#
# Each target makes the virtual environment that it needs. Python: make PYTHON=/path/to/python3 ...

SHELL := /bin/sh
.DELETE_ON_ERROR:
.SUFFIXES:
.NOTPARALLEL:
.PHONY: help demo demo-regression test test-python test-r install-r test-lower docs lint format bench bench-suite tables tables-quick audit clean

PYTHON ?= python3
WORKERS ?= auto

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export MPLBACKEND := Agg

# An environment is made anew when what goes into it changes: these files, the Python, the folder.
KEY := $(shell { cat pyproject.toml tests/lower-bounds.txt .ci/create-venv .ci/install-r; \
	$(PYTHON) -c 'import sys; print(sys.version, sys.base_prefix)' 2>/dev/null; pwd; } | cksum | cut -d' ' -f1)

MAIN := .venv
LOWER := .venv-lower
BENCH := .venv-bench
INSTALL = bin/python -m pip install --quiet

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

$(MAIN)/.made-$(KEY) $(LOWER)/.made-$(KEY) $(BENCH)/.made-$(KEY):
	.ci/create-venv "$(PYTHON)" "$(@D)"
	@touch $@

$(MAIN)/.run-$(KEY): | $(MAIN)/.made-$(KEY)
	$(MAIN)/$(INSTALL) --editable '.[plot,progress]'
	@touch $@

$(MAIN)/.test-$(KEY): | $(MAIN)/.made-$(KEY)
	$(MAIN)/$(INSTALL) --editable '.[test,lint]'
	@touch $@ $(MAIN)/.run-$(KEY)

# rpy2 is built against the R that is there.
$(MAIN)/.r-$(KEY): $(MAIN)/.test-$(KEY)
	.ci/install-r $(MAIN)/bin/python
	$(MAIN)/$(INSTALL) --editable '.[test,r-test]'
	@touch $@

$(MAIN)/.docs-$(KEY): | $(MAIN)/.made-$(KEY)
	$(MAIN)/$(INSTALL) --editable '.[docs]'
	@touch $@

$(LOWER)/.test-$(KEY): | $(LOWER)/.made-$(KEY)
	$(LOWER)/$(INSTALL) --editable '.[test]' --constraint tests/lower-bounds.txt
	@touch $@

$(BENCH)/.run-$(KEY): | $(BENCH)/.made-$(KEY)
	$(BENCH)/$(INSTALL) --editable '.[plot,bench]'
	@touch $@

demo: $(MAIN)/.run-$(KEY)
	@mkdir -p demo
	$(MAIN)/bin/pydpmode modes pydpmode/data/wages.parquet --columns age,wage \
		--bounds age=15:90 --bounds wage=1000:300000 --log wage \
		--epsilon 1 --delta 1e-6 --plot demo/wages.png --json demo/wages.json >demo/wages.txt
	@cat demo/wages.txt
	@echo "Written: demo/wages.txt, demo/wages.png, demo/wages.json"

demo-regression: $(MAIN)/.run-$(KEY)
	@mkdir -p demo
	$(MAIN)/bin/pydpmode regression pydpmode/data/wages.parquet "log(wage) ~ age" \
		--bounds age=15:90 --bounds wage=1000:300000 --resolution age=1 --epsilon 1 --delta 1e-6 \
		--plot demo/wage-by-age.png --json demo/wage-by-age.json >demo/wage-by-age.txt
	@cat demo/wage-by-age.txt
	@echo "Written: demo/wage-by-age.txt, demo/wage-by-age.png, demo/wage-by-age.json"

lint: $(MAIN)/.test-$(KEY)
	$(MAIN)/bin/ruff check .
	$(MAIN)/bin/ruff format --check .
	$(MAIN)/bin/mypy

# Tests run side by side, so each has one thread: more would only wait for each other.
test-python test-r test-lower: export OMP_NUM_THREADS := 1
test-python test-r test-lower: export OPENBLAS_NUM_THREADS := 1

test: test-python test-r

test-python: lint
	$(MAIN)/bin/python -m pytest --numprocesses $(WORKERS)

test-r: $(MAIN)/.r-$(KEY)
	.ci/check-r $(MAIN)/bin/python $(MAIN)/r-check
	DPMODE_REQUIRE_R=1 R_LIBS=$(CURDIR)/$(MAIN)/r-check/dpmode.Rcheck $(MAIN)/bin/python -m pytest tests/embedded

install-r:
	.ci/install-r
	R CMD INSTALL .

test-lower: $(LOWER)/.test-$(KEY)
	$(LOWER)/bin/python -m pytest --numprocesses $(WORKERS)

# Warnings are errors: mkdocs.yml says strict. The variable silences an announcement of its makers.
docs: $(MAIN)/.docs-$(KEY)
	NO_MKDOCS_2_WARNING=1 $(MAIN)/bin/mkdocs build --quiet
	@echo "Written: build/docs/index.html"

format: $(MAIN)/.test-$(KEY)
	$(MAIN)/bin/ruff check --fix .
	$(MAIN)/bin/ruff format .

bench: $(BENCH)/.run-$(KEY)
	$(BENCH)/bin/python benchmarks/speed.py
	$(MAKE) bench-suite

bench-suite: $(BENCH)/.run-$(KEY)
	$(BENCH)/bin/python -m pytest -c benchmarks/suite/pytest.ini benchmarks/suite --results benchmarks/results/suite.csv
	$(BENCH)/bin/python -m benchmarks.suite.page

tables: $(BENCH)/.run-$(KEY)
	$(BENCH)/bin/python benchmarks/tables.py

tables-quick: $(BENCH)/.run-$(KEY)
	$(BENCH)/bin/python benchmarks/tables.py --quick

audit: $(MAIN)/.test-$(KEY)
	$(MAIN)/bin/python -m audits

clean:
	rm -rf $(MAIN) $(LOWER) $(BENCH) demo build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
