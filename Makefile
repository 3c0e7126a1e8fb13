# The environment is .venv in this folder; every target builds it when it is missing or out of date.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test check docs package package-all test-oldest fix bench bench-authors paper paper-quick peers quality fuzz picture clean

demo: .venv/ready  ## fit the embedded example and print the clusters
	$(BIN)/coview demo

test: .venv/ready  ## run the whole test suite, a process on each core; pytest alone runs it in one
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n auto --dist worksteal --cov --cov-fail-under=95

docs: .venv/ready  ## build the documentation site into build/site, and run its tutorials; warnings are errors
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet --jobs auto docs build/site
	@echo "open build/site/index.html"

check: .venv/ready  ## everything CI runs: format, lint, types, the site, tests, demo, a small run of the paper's tables, the wheel
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(MAKE) docs
	$(MAKE) test
	$(MAKE) demo
	$(MAKE) paper-quick
	$(MAKE) package

package:  ## build the sdist and the wheel into dist/, and run fast tests of the wheel in a clean environment
	PYTHON=$(PYTHON) .ci/package

package-all:  ## the same with all tests, and with every supported Python that is found
	PYTHON=$(PYTHON) .ci/package --all

test-oldest:  ## test the wheel with the oldest dependencies that pyproject.toml allows
	PYTHON=$(PYTHON) .ci/package --oldest

fix: .venv/ready  ## format the code and fix lint errors
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/ready  ## measure speed and memory as ratios; writes the table of docs/performance.md
	$(BIN)/python -m benchmarks.speed.run $(if $(BEFORE),--before $(BEFORE))

bench-authors: .venv/ready  ## time the methods beside their authors' programs; needs the reference input
	$(BIN)/python -m benchmarks.speed.authors

paper: .venv/ready  ## run the experiments of the paper and write docs/paper; resumes an interrupted run
	$(BIN)/python -m benchmarks.paper.run

paper-quick: .venv/ready  ## the same with few settings on two small data sets, into a temporary folder, as a test
	folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && \
	$(BIN)/python -m benchmarks.paper.run --quick --jobs 1 --out "$$folder/pages" --rows "$$folder/rows"

quality: .venv/bench  ## measure clusters without labels on real data and write docs/quality.md; resumes an interrupted run
	$(BIN)/python -m benchmarks.quality.run

peers: .venv/peers/ready  ## run other libraries and coview on the same data and write docs/peers.md; resumes an interrupted run
	.venv/peers/bin/python -m benchmarks.peers.run

fuzz: .venv/ready  ## estimators, numerics, files, models, faults and clusters; resumes an interrupted run, see docs/reliability.md
	$(BIN)/python -m benchmarks.fuzz.run

picture: demo  ## draw docs/explain/*.svg, and docs/report.png, the screenshot in the README; needs Chromium and chromedriver
	$(BIN)/python docs/pictures.py
	$(BIN)/python docs/screenshot.py demo-run/report.html docs/report.png

clean:  ## remove everything that make built
	rm -rf .venv build dist docs/api/generated docs/tutorials demo-run fuzz .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "coview needs Python 3.11 or newer; try: make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $@

.venv/bench: .venv/ready  # baselines that only `make quality` needs
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[bench]"
	touch $@

.venv/peers/ready: benchmarks/peers/requirements.txt pyproject.toml  # an environment of its own: their dependencies are many
	$(PYTHON) -m venv .venv/peers
	.venv/peers/bin/python -m pip install --quiet --disable-pip-version-check --requirement benchmarks/peers/requirements.txt --editable .
	touch $@
