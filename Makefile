# verify  prove and check every theorem (installs the core, no torch)
# test    the whole test suite          (adds pytest, torch, tokenizers, mkdocs)
# test-algebra, test-proofs, test-numeric, test-audit, test-otimes   each a part of it
# lint    ruff, and mypy in strict mode
# docs    the teaching site, into site/
# test-site   the built site in Chromium: pages, lessons, the judge
# peers   `make test-peers`: the audit of other people's code, in .venv-peers
# bench   how fast, against what else there is; THEIRS=... is a Python with TransformerLens 3
#
# .venv/tree has links that show the packages as they are installed, for tools that do not import
# (mypy and mkdocstrings).
#
# Each makes .venv when it is missing and installs what it needs once: the stamps in .venv say
# what is there already. PYTHON=... chooses the interpreter that .venv is made with.

PYTHON ?=
IN := .venv/bin/
PIP := $(IN)python -m pip install -qq -c constraints.txt
ENVIRONMENT := pyproject.toml setup.py constraints.txt .venv/made

# pip should neither talk about itself nor ask anything, here or where it builds.
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1
# Compiled modules are kept: the tests start Python hundreds of times.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: verify test test-algebra test-proofs test-numeric test-audit test-otimes test-peers test-site lint docs \
  bench clean
.DEFAULT_GOAL := verify

verify: .venv/core
	@$(IN)otimes verify

PYTEST = $(IN)python -m pytest -n 2 --dist loadgroup --no-loadscope-reorder

test: .venv/test
	@$(PYTEST)

test-algebra test-proofs: test-%: .venv/test
	@$(PYTEST) tests/$*

test-numeric: .venv/test
	@$(PYTEST) tests/numeric --ignore tests/numeric/audit

test-audit: .venv/test
	@$(PYTEST) tests/numeric/audit tests/otimes/test_audit.py

test-otimes: .venv/test
	@$(PYTEST) tests/otimes tests/docs tests/test_*.py --ignore tests/otimes/test_audit.py

test-peers: .venv-peers/peers
	@.venv-peers/bin/python -m pytest -q -n 2 tests/peers

lint: .venv/lint
	@$(IN)ruff check .
	@$(IN)ruff format --check .
	@$(IN)mypy

docs: .venv/docs
	@$(IN)python docs/_builder/pyodide.py
	@NO_MKDOCS_2_WARNING=1 OPENBLAS_NUM_THREADS=1 $(IN)python docs/_builder/make_site.py
	@echo "the site is in site/: \`otimes docs\` serves it; most of it also reads from site/index.html"

test-site: .venv/test
	@test -f site/index.html || { echo "there is no site: make docs" >&2; exit 1; }
	@$(IN)python -m pytest -q tests/site/check_pages.py

bench: .venv/test
	@$(IN)python tests/bench/run.py
	@$(IN)python -m tests.bench.suite
	@$(IN)python -m tests.bench.paths
	@$(IN)python -m tests.bench.circuits $(if $(THEIRS),--theirs '$(THEIRS)')
	@$(IN)python -m tests.bench.audit
	@$(IN)python -m tests.bench.gpt2_size

clean:
	rm -rf .venv .venv-peers site build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

.venv/core: $(ENVIRONMENT)
	@echo "Installing the core (SymPy, NumPy, SciPy and small ones, no torch) into .venv:" \
	  "about 60 MB to fetch, 350 MB on disk."
	@$(PIP) -e .
	@mkdir -p .venv/tree/otimes
	@cd .venv/tree/otimes && ln -sf ../../../otimes/*.py* ../../../otimes/py.typed . \
	  && ln -sfn ../../../algebra algebra && ln -sfn ../../../numeric numeric \
	  && ln -sfn ../../../proofs proofs
	@touch $@

# torch goes first and by its exact version: left to a resolver, it can bring gigabytes of
# GPU libraries that nothing here uses.
.venv/test: .venv/core
	@echo "Installing what the tests need (pytest, torch, tokenizers, mkdocs, matplotlib) into .venv:" \
	  "about 250 MB to fetch with a CPU build of torch, 1.1 GB on disk."
	@$(PIP) torch==2.13.0
	@$(PIP) -e '.[train,test,docs,plot]'
	@touch $@

# Tools whose requirements conflict with the others or are not needed for what is compared:
# dictionary-learning asks for nnsight below 0.4, inseq for typeguard 2 (TransformerLens for 4),
# bertviz for boto3, pyvene and pyreft for notebooks.
TOOLS := pyvene==0.1.8 pyreft==0.1.0 dictionary-learning==0.1.0 eai-sparsify==1.3.3 \
  circuitsvis==1.43.3 bertviz==1.4.1 inseq==0.7.1

# The peers need versions of their own, and must not decide what the project's environment holds.
.venv-peers/peers: $(ENVIRONMENT)
	@echo "Installing other people's transformers and tools (transformers, TransformerLens 3.9, captum," \
	  "shap, nnsight, pyvene) into .venv-peers: about 600 MB to fetch, 2.1 GB on disk."
	@$(IN)python -m venv .venv-peers
	@.venv-peers/bin/python -m pip install -qq torch==2.13.0
	@.venv-peers/bin/python -m pip install -qq -e '.[audit,tools,test]'
	@.venv-peers/bin/python -m pip install -qq --no-deps $(TOOLS)
	@touch $@

.venv/lint: .venv/core
	@echo "Installing ruff and mypy into .venv: about 30 MB to fetch."
	@$(PIP) -e '.[test,lint]'
	@touch $@

.venv/docs: .venv/core
	@echo "Installing mkdocs, its theme and mini-racer into .venv: about 50 MB to fetch."
	@$(PIP) -e '.[docs]'
	@touch $@

# The first interpreter that is new enough and can make an environment. A shim that is on the
# path but leads nowhere fails the first question like a missing one.
.venv/made:
	@found=; lame=; \
	for python in $(if $(PYTHON),'$(PYTHON)',python3.13 python3.12 python3.11 python3); do \
	  "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 || continue; \
	  if "$$python" -c 'import venv, ensurepip' >/dev/null 2>&1; \
	  then found=$$python; break; else lame=$${lame:-$$python}; fi; \
	done; \
	if [ -n "$$found" ]; then \
	  "$$found" -m venv .venv && touch .venv/made; \
	elif [ -n "$$lame" ]; then \
	  echo "$$lame cannot make an environment (venv or ensurepip is missing):" \
	    "install them first, on Debian and Ubuntu with: apt install python3-venv" >&2; exit 1; \
	else \
	  echo "$(if $(PYTHON),PYTHON=$(PYTHON) is not a Python 3.11 or newer that runs,otimes needs Python 3.11 or newer and found none):" \
	    "install one, or name it with: make PYTHON=/path/to/python3" >&2; exit 1; \
	fi
