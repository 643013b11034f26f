# Every target does all of its own set-up, from a bare python3 in a fresh clone, into .venv/ here.
PYTHON ?= python3
BIN := .venv/bin
SEARCH ?= 10
SEED ?= $(shell date +%s)
SIDE_BY_SIDE := -n logical --dist loadfile

.PHONY: help reproduce test test-all test-lowest coverage test-ray test-browser test-gpu torture fuzz search check guarantees bench-planner bench-lists bench-solvers bench-gpu bench build figures docs docs-open clean
.DEFAULT_GOAL := help

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' Makefile

reproduce: .venv/ready  ## the paper's Figure 1, redrawn: runs/figure1/
	$(BIN)/cmdplab reproduce

test: .venv/ready-dev  ## the test suite, without what is slow (some minutes on two cores)
	$(BIN)/python tests/compile_first.py
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) -m 'not slow'

test-all: .venv/ready-dev  ## the whole test suite
	$(BIN)/python tests/compile_first.py
	$(BIN)/python -m pytest $(SIDE_BY_SIDE)

coverage: .venv/ready-dev  ## which lines the whole test suite runs: htmlcov/
	$(BIN)/python tests/compile_first.py
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) --cov --cov-report=html --cov-report=term:skip-covered

test-lowest: .venv/ready  ## the quick tests on the lowest versions that pyproject.toml allows: .venv-lowest/
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python .venv-lowest
	$(BIN)/uv pip install --quiet --python .venv-lowest/bin/python --resolution lowest-direct --editable '.[dev]'
	.venv-lowest/bin/python tests/compile_first.py
	.venv-lowest/bin/python -m pytest $(SIDE_BY_SIDE) -W default -m 'not slow'

test-ray: .venv/ready-ray  ## sweeps on a real Ray cluster of two nodes, one of which is killed
	$(BIN)/python -m pytest tests/experiments/ray_cluster.py

test-browser: .venv/ready-browser  ## the report in a real browser, if there is a Chromium
	@if [ -n "$${CHROMIUM:-$$(command -v chromium || command -v google-chrome)}" ]; then \
	  $(BIN)/python -m pytest tests/report/browser_report.py; \
	else echo "skipped: no Chromium here; apt-get install chromium, or give its path as CHROMIUM"; fi

test-gpu: .venv/ready-gpu  ## the GPU engine on a GPU, if there is one
	$(BIN)/python -m pytest tests/engines/gpu_device.py

torture: .venv/ready-dev  ## kill sweeps 200 times and compare (about ten minutes)
	$(BIN)/python benchmarks/torture.py

fuzz: .venv/ready-dev  ## damage a hundred thousand files and read them (a few minutes)
	$(BIN)/python -W error tests/fuzz_readers.py 100000

search: .venv/ready-dev  ## 10 times the examples of Hypothesis, others each time: SEARCH=100 SEED=7 (half an hour)
	$(BIN)/python tests/compile_first.py
	SEARCH=$(SEARCH) $(BIN)/python -m pytest $(SIDE_BY_SIDE) -m hypothesis --hypothesis-seed=$(SEED)

check: .venv/ready-dev  ## formatting, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

guarantees: .venv/ready-dev  ## coverage, safety and averages of Table 1's algorithms (minutes)
	$(BIN)/python benchmarks/guarantees.py

bench-planner: .venv/ready-dev  ## the interval planner against HiGHS, and episodes of planners
	$(BIN)/python benchmarks/planner.py
	$(BIN)/python benchmarks/triple_q.py

bench-lists: .venv/ready  ## large grids: time and memory against the number of transitions
	$(BIN)/python benchmarks/sparse.py

bench-solvers: .venv/ready-benchmarks  ## certified optima against QuantEcon, HiGHS, Storm and others
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -W ignore benchmarks/solvers.py
	OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/solvers.py --large 1e5

bench-gpu: .venv/ready-gpu  ## the GPU engine: speed, limits, where it overtakes the cores
	$(BIN)/python benchmarks/gpu.py --part device speed triple_q
	$(BIN)/python benchmarks/gpu_runs.py public crossing sweep

bench: .venv/ready  ## microseconds per episode, ours against plain NumPy
	$(BIN)/python benchmarks/engines.py

figures: .venv/ready  ## every documented figure, into docs/figures/ (about six minutes)
	$(BIN)/cmdplab reproduce --out runs/figure1
	$(BIN)/cmdplab reproduce --preset printed --out runs/figure1-printed
	$(BIN)/cmdplab reproduce --preset printed --bonus-scale 1e-5 --episodes 1000000 --seeds 3 \
	  --out runs/printed-1e-5
	$(BIN)/cmdplab reproduce --preset printed --bonus-scale 1e-3 --episodes 10000000 --seeds 3 \
	  --algorithm UOpt-RPGPD --out runs/printed-1e-3
	mkdir -p docs/figures
	for name in figure1 figure1-printed printed-1e-5 printed-1e-3; do \
	  cp runs/$$name/figure1.png docs/figures/$$name.png; done

docs: .venv/ready-docs  ## the documentation site: build/docs/index.html (a few minutes, offline)
	mkdir -p build/board && tar xzf docs/_static/board/records.tar.gz -C build/board
	CMDPLAB_QUIET=1 $(BIN)/cmdplab board --out build/board --page docs/_static/board >build/board/said 2>&1
	CMDPLAB_QUIET=1 $(BIN)/python -m sphinx --fail-on-warning --keep-going --jobs auto --quiet docs build/docs
	@echo "open build/docs/index.html, or: make docs-open"

docs-open: docs  ## build the documentation site and open it in a browser
	$(BIN)/python -m webbrowser "file://$(CURDIR)/build/docs/index.html"

build: .venv/ready-dev  ## wheel and sdist, into dist/
	$(BIN)/python -m build

clean:  ## remove the environment and everything built
	rm -rf .venv .venv-lowest build dist runs docs/api docs/gallery .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage htmlcov

.venv/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "cmdplab needs Python 3.11 or newer as $(PYTHON); choose another with: make PYTHON=/path/to/python3.12" >&2; exit 2; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
	  { echo "this Python has no venv module; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 2; }
	@echo "setting up .venv (a minute, and quiet)"
	@$(PYTHON) -m venv .venv
	@touch $@

.venv/ready: .venv/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[lab]'
	@touch $@

.venv/ready-dev .venv/ready-docs .venv/ready-benchmarks: .venv/ready-%: .venv/ready pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@

.venv/ready-ray .venv/ready-browser .venv/ready-gpu: .venv/ready-%: .venv/ready-dev pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,$*]'
	@touch $@
