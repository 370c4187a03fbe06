# Two commands do everything on a fresh machine: `make lab` opens the lab, `make test` runs what CI runs.
# Each makes its own environment in .venv on first use; a second run needs no set-up and no network.
#
#   make lab                      make test [PYTHON=python3.13] [LAB_SLICE=NUMBER]
#   make quick                    the daily loop, under three minutes: no browser, nothing slow
#   make full                     every cell of every matrix, with the pinned, the lowest and the newest dependencies
#   make soak [SOAK=20]           the random tests with SOAK times the examples, the loops SOAK times as long
#   make lint | bench | notebooks | clean

ifndef PYTHON
PYTHON := $(shell for p in python3 python3.13 python3.12 python3.11; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$p"; break; }; done)
endif
ifeq ($(PYTHON),)
$(error Python 3.11 or newer is needed and none was found: install one, or name it, as in `make lab PYTHON=/path/to/python3.12`)
endif

# An environment that the caller has activated is not the one that is used here: IPython would warn of it, in a test, too.
unexport VIRTUAL_ENV

TAG := $(shell "$(PYTHON)" -c 'import sys; print("py%d%d" % sys.version_info[:2])')
ifeq ($(TAG),)
$(error "$(PYTHON)" does not run: name a Python 3.11 or newer, as in `make lab PYTHON=/path/to/python3.12`)
endif
# DEPS is empty (whatever pip chooses on the day), pinned, lowest or newest: one environment each.
DEPS :=
SOAK := 20
ARGS :=
LINT := yes
VENV := .venv/$(TAG)$(if $(DEPS),-$(DEPS))
PY   := $(VENV)/bin/python
PIP  := $(PY) -m pip --disable-pip-version-check install --quiet

.PHONY: lab test quick full soak lint bench notebooks clean browser lint-and-test

lab: $(VENV)/.lab
	@$(PY) -m lab warm
	@$(PY) -m lab open $(ARGS) || [ $$? = 130 ] # Ctrl-C is how one closes it

test: $(VENV)/.test browser
	@$(MAKE) --no-print-directory lint-and-test RUN='-m tests.lanes "not soak"'

quick: $(VENV)/.test
	@$(MAKE) --no-print-directory lint-and-test RUN='-m pytest -m "not browser and not slow and not soak"'

# Types are checked with the newest stubs only: older ones know less of what we call.
full:
	@for deps in pinned lowest newest; do \
		echo "== make test with the $$deps dependencies"; \
		$(MAKE) --no-print-directory test DEPS=$$deps ARGS="--whole $(ARGS)" $$([ $$deps = newest ] || echo LINT=) || exit 1; \
	done
	@$(MAKE) --no-print-directory soak SOAK=5

soak: $(VENV)/.test
	$(PY) -m pytest -m "soak or hypothesis" --soak=$(SOAK) --timeout=0 $(ARGS)

lint: $(VENV)/.test
	$(PY) -m ruff check
	$(PY) -m mypy

bench: $(VENV)/.bench
	$(PY) -m tests.benchmarks $(ARGS)

notebooks: $(VENV)/.test
	$(PY) -m tests.pairing

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
	find lab widgets tests notebooks -name __pycache__ -prune -exec rm -rf {} +

browser: $(VENV)/.test
	@$(PY) -m tests.browser.chromium

# The tests run even where the linter complains, so that one run tells everything; pytest has the last word.
lint-and-test:
	@status=0; \
	$(if $(LINT),$(PY) -m ruff check || status=1; $(PY) -m mypy || status=1;) \
	$(PY) $(RUN) $(ARGS) || status=1; \
	exit $$status

$(VENV)/constraints.txt: pyproject.toml binder/environment.yml
	@echo "Making the environment $(VENV) with $$($(PYTHON) --version)"
	@"$(PYTHON)" -m venv $(VENV) || { \
		echo "Python's venv module does not work here. On Debian or Ubuntu: apt-get install python3-venv"; exit 1; }
	@$(PY) -m tests.dependencies $(or $(DEPS),any) > $@

$(VENV)/.lab: $(VENV)/constraints.txt
	@echo "Installing the lab (some minutes the first time, nothing afterwards)"
	@$(PIP) $(UPGRADE) --constraint $< --editable .
	@touch $@

$(VENV)/.test: $(VENV)/constraints.txt
	@echo "Installing the lab and what its tests need (some minutes the first time, nothing afterwards)"
	@$(PIP) $(UPGRADE) --constraint $< --editable ".[test]"
	@touch $@ $(VENV)/.lab

$(VENV)/.bench: $(VENV)/.test
	@$(PIP) --constraint $(VENV)/constraints.txt --editable ".[test,bench]"
	@touch $@

UPGRADE := $(if $(filter newest,$(DEPS)),--upgrade --upgrade-strategy eager)
