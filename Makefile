# `make demo` and `make test` do all their own set-up; `make check` is what CI runs.
PYTHON ?= python3
# Where this forbids it, each worker and each program that a test starts compiles all modules again.
export PYTHONDONTWRITEBYTECODE :=
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.locked
DEMO := $(VENV)/.demo
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check
# The tests of a file stay together.
SUITE := $(BIN)/python -m pytest --dist loadfile --no-loadscope-reorder
# With an arena of memory for each thread, the many threads of the labs keep a hundred MiB that nobody uses. Not for
# `make bench`, which measures what a user has.
test suite: export MALLOC_ARENA_MAX := 1
# One more than processors: a seventh of the time a test waits, for a program or for a moment.
WORKERS = $(shell $(PYTHON) -c 'import os; print(min(os.cpu_count() + 1, 8))')

.PHONY: help demo test check suite lint golden conformance real genuine compat wheel fuzz matrix mutate bench bench-peer sbom advisories lock clean docs
help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(STAMP): requirements.lock pyproject.toml lab/pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "winboot needs Python 3.11 or newer")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo 'fetching the packages of the developers (about 520 MB) into $(VENV)'
	$(INSTALL) --require-hashes -r requirements.lock
	$(INSTALL) --no-deps --no-build-isolation -e . -e ./lab
	touch $(STAMP) $(DEMO)

# The runtime and the lab alone, of the same lock.
$(DEMO): requirements.lock pyproject.toml lab/pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "winboot needs Python 3.11 or newer")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PYTHON) tools/runtime_lock.py > $(VENV)/runtime.lock
	$(INSTALL) --require-hashes -r $(VENV)/runtime.lock
	$(INSTALL) --no-deps --no-build-isolation -e . -e ./lab
	touch $(DEMO)

demo: $(DEMO) ## lab up, three nodes joined over WinRM, second run without a change, report written
	$(BIN)/winboot lab demo --report demo-report

test: $(STAMP) ## the test suite: minutes; CHANGED=1: the tests of what differs from main (CHANGED=REF: from there)
ifdef CHANGED
	$(BIN)/python -m tests.changed $(CHANGED)
else
	$(SUITE) -n auto --maxprocesses 8 -m "not nightly and not matrix and not check"
endif

lint: $(STAMP) ## ruff, mypy --strict, import-linter, commit subjects
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tools.commit_subjects

golden: $(STAMP) ## renew what is made from the code: golden scripts, the schema of profiles and the generated pages
	$(BIN)/python -m tools.pages
	WINBOOT_GOLDEN=write $(BIN)/python -m pytest tests/golden

check: lint suite ## all that CI runs: lint, the suite, samples of the matrices, what needs a real program
suite: $(STAMP)
	$(SUITE) -n $(WORKERS)

CASES ?= lab/conformance
conformance: $(STAMP) ## the lab's answers against recordings of the real PowerShell (CASES=folder for others)
	$(BIN)/python -m winboot_lab.conformance $(CASES)

PWSH ?= pwsh
STEPS ?= tests/steps
real: ## the library, joins, first boot, verify, upgrade, rollback, remove, tests of steps (STEPS=paths) and golden scripts on a real PowerShell (PWSH=path, SCRIPTS=folder of rendered scripts; 69 where there is none)
	@sh tests/real/run.sh $(PWSH) $(if $(SCRIPTS),-Scripts $(SCRIPTS))
ifneq ($(wildcard $(STAMP)),)
	$(BIN)/python -m pytest -q --engine pwsh --pwsh $(PWSH) tests/real tests/verify tests/firstboot \
		tests/lab/test_upgrade.py tests/lab/test_remove.py tests/lab/test_network_undo.py
	$(BIN)/python -m tests.real.both $(PWSH) -n auto --maxprocesses 8 --dist loadfile $(STEPS)
endif

KUBE ?=
genuine: $(STAMP) ## preflight, CSRs, the API's contract and whole joins on a real control plane (KUBE=folder with its programs; etcd); CAPI=folder with Cluster API's bootstrap-components.yaml
	KUBE="$(KUBE)" CAPI="$(CAPI)" $(BIN)/python -m pytest -rs -m genuine tests/genuine

UPSTREAM ?=
compat: $(STAMP) ## what upstream's own texts say otherwise than the data (UPSTREAM=folder, OVERLAY=file to write; docs/compat.md)
	$(BIN)/python -m tools.compat_upstream $(UPSTREAM) $(if $(OVERLAY),--overlay $(OVERLAY))

fuzz: $(STAMP) ## the long property tests: 20,000 examples for each border parser
	HYPOTHESIS_PROFILE=fuzz $(BIN)/python -m pytest -m nightly -o addopts="--strict-markers -q" -o faulthandler_timeout=0
	HYPOTHESIS_PROFILE=fuzz $(BIN)/python -m pytest -o faulthandler_timeout=0 $$(grep -rl '@given' tests --include='test_*.py')

matrix: $(STAMP) ## every combination of machines, and cuts at every place: hours
	$(BIN)/python -m pytest -m matrix -n auto --maxprocesses 8

mutate: $(STAMP) ## each decision of tests/mutations/table.py made wrong once: does a test notice? (ONLY='words' of names)
	$(BIN)/python -m tests.mutations.runner $(ONLY)

bench: $(STAMP) ## ratios against a floor or a peer measured in the same run
	$(BIN)/python -m benchmarks

bench-peer: $(STAMP) ## make bench with Ansible as a peer, in a virtual environment of its own
	test -x .bench-venv/bin/python || $(PYTHON) -m venv .bench-venv
	.bench-venv/bin/pip install --quiet --disable-pip-version-check 'ansible-core>=2.17' 'pypsrp>=0.9.1'
	$(BIN)/python -m benchmarks peer

wheel: $(STAMP) ## the wheel with its manual page, in dist/
	mkdir -p build && $(BIN)/python -m tools.manual > build/winboot.1
	$(BIN)/python -m hatchling build -t wheel

LOCK ?= requirements.lock
sbom: ## sbom.cdx.json: what the lock holds, as CycloneDX (LOCK=file for another lock)
	$(PYTHON) tools/sbom.py $(LOCK) > sbom.cdx.json

advisories: ## known advisories about the lock, by pip-audit in a virtual environment of its own (asks pypi.org)
	test -x .audit-venv/bin/python || $(PYTHON) -m venv .audit-venv
	.audit-venv/bin/pip install --quiet --disable-pip-version-check 'pip-audit>=2.7'
	.audit-venv/bin/pip-audit --require-hashes --disable-pip -r $(LOCK)

lock: ## renew requirements.lock (needs uv)
	uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes -o requirements.lock
	uv pip compile pyproject.toml docs/examples/hook/requirements.in --extra aws --extra azure --extra ssh --universal \
		--python-version 3.11 --generate-hashes -c requirements.lock -o docs/examples/hook/requirements.lock

clean: ## forget the virtual environment and caches
	rm -rf $(VENV) .bench-venv .audit-venv sbom.cdx.json .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
