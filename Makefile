# Everything starts from a fresh clone: each target sets up what it needs, once.
# Needs make and Python 3.11 or later; Java 17 or later is found, or provided as a wheel.

VENV := .venv
PY := $(VENV)/bin/python
READY := $(VENV)/.ready
KAFKA_READY := $(VENV)/.ready-kafka
PIP_INSTALL := $(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt
PYTEST := $(PY) -m pytest -rs --durations=5 --durations-min=1

# Two processes at once, a file of tests each: half the time on two cores.
TWO := --numprocesses=2 --dist=loadfile

# A command that needs Java: finds one, installs the wheel if there is none, or stops with a sentence.
WITH_JAVA := JAVA_HOME="$$($(PY) -m tocsin.java ensure --constraints constraints.txt)" && export JAVA_HOME &&

.DEFAULT_GOAL := help
.PHONY: help setup demo test check format bench papers papers-live kills chaos kafka browser screenshots clean distclean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## Create .venv with everything that the other targets need
	@$(WITH_JAVA) echo "Ready: $$($(PY) --version), Java in $$JAVA_HOME"

demo: $(READY) ## Run a city of reports and subscribers for one to three minutes
	@$(WITH_JAVA) $(VENV)/bin/tocsin demo $(ARGS)

# Java's second compiler costs tests a third of their CPU and is never paid back: each JVM lives for seconds.
test browser kills: export SPARK_SUBMIT_OPTS := -XX:TieredStopAtLevel=1

test: $(READY) ## Run all tests: unit and properties, then Spark, then whole processes
	@$(WITH_JAVA) .ci/pytest-dirs $(PYTEST) -- "$(TWO) tests/unit tests/properties tests/conformance tests/papers" \
		tests/spark "$(TWO) tests/integration" $(if $(SKIP_BROWSER),,tests/browser)

browser: $(READY) ## Install a Chromium where that may be, and test the dashboard's pages in it
	@.ci/chromium
	@$(WITH_JAVA) $(PYTEST) tests/browser

screenshots: $(READY) ## Take the pictures of the dashboard that the docs show, with a Chromium
	@.ci/chromium
	@$(WITH_JAVA) $(PY) docs/images/take.py

check: $(READY) ## Lint, check formatting, types and the layers
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports

format: $(READY) ## Format the code and repair what the linter can
	@$(VENV)/bin/ruff check --fix .
	@$(VENV)/bin/ruff format .

bench: $(READY) ## Measure channels, subscriptions, fan-out, balancing and the dashboard; ARGS=--quick for the short form
	@$(WITH_JAVA) $(PY) benchmarks/channels.py $(ARGS)
	@$(PY) benchmarks/subscriptions.py $(ARGS)
	@$(PY) benchmarks/fanout.py $(ARGS)
	@$(PY) benchmarks/balancing.py $(ARGS)
	@$(PY) benchmarks/dashboard.py $(ARGS)

papers: $(READY) ## Reproduce the papers: figures and a report in papers/; ARGS="--figure 13" for one figure
	@$(VENV)/bin/tocsin lab run debs19 $(ARGS)

papers-live: $(READY) ## Measure the papers' prototype on a living system (half an hour); ARGS="--figure 8" for less
	@$(WITH_JAVA) $(VENV)/bin/tocsin lab run debs19-live $(ARGS)

kills: $(READY) ## Kill the whole cluster a dozen times while it is fed (a few minutes)
	@$(WITH_JAVA) TOCSIN_TEST_KILLS=12 $(PYTEST) tests/integration/test_kill_cluster.py

chaos: $(READY) ## Hurt a whole system under traffic, 200 seeds (over an hour); ARGS="--seeds 1:5" for fewer
	@$(WITH_JAVA) $(VENV)/bin/tocsin chaos --seeds 1:200 $(ARGS)

kafka: $(KAFKA_READY) ## Fetch a real Kafka with Maven and test the Kafka feed against it
	@if command -v mvn > /dev/null; then kafka/fetch; else echo "Maven (mvn) is not here: the Kafka tests are skipped"; fi
	@$(WITH_JAVA) $(PYTEST) -m kafka tests

clean: ## Remove caches and what demos and tests left
	@rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .demo .chaos dist spark-warehouse metastore_db derby.log
	@find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## Remove the environment and fetched jars as well
	@rm -rf $(VENV) .jars

$(READY): pyproject.toml constraints.txt | $(PY)
	@echo "Installing Tocsin and its tools into $(VENV) (a few minutes the first time) ..."
	@$(PIP_INSTALL) -e '.[broker,cluster,coordinator,dashboard,lab,dev]'
	@touch $@

$(KAFKA_READY): $(READY)
	@$(PIP_INSTALL) -e '.[broker,cluster,coordinator,dashboard,kafka,lab,dev]'
	@touch $@

$(PY):
	@.ci/venv $(VENV)
