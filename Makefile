# Everything runs in .venv, made by the first target that needs it from the pinned, hashed lock.
# What is typed after ARGS= goes to the command: make demo ARGS="--model openai:NAME", make test ARGS="-k seal".

PYTHON ?= $(firstword $(foreach name,python3 python3.14 python3.13 python3.12 python3.11,$(shell \
	$(name) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(name))))
BIN := .venv/bin
PACKAGES := packages/filters packages/sessions packages/agent packages/cli
CHECKED := $(wildcard packages/*/src tests examples benchmarks)
ARGS ?=

.PHONY: demo test browser check bench format lock clean

demo: .venv/.packages
	@exec $(BIN)/handrail demo $(ARGS)

# Where there is no Chromium, it is fetched while the packages are. The tests start many processes: each would compile
# all it imports where the environment keeps byte code off the disk.
test:
	@$(MAKE) --no-print-directory --jobs=2 .venv/.servers browser
	@PYTHONDONTWRITEBYTECODE= exec $(BIN)/python -m pytest -n 2 --dist loadgroup $(ARGS)

check: .venv/.packages
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy $(CHECKED)
	$(BIN)/lint-imports --no-cache

bench: .venv/.packages
	@exec $(BIN)/python -m benchmarks $(ARGS)

format: .venv/.packages
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Needs uv on the PATH; the lock names no index, so any index will do.
lock:
	for name in requirements requirements-node; do \
		uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
			--no-emit-index-url --no-emit-find-links $(ARGS) $$name.in -o $$name.txt; done

clean:
	rm -rf .venv tests/servers/node_modules

.venv/.lock: requirements.txt
	@test -n "$(PYTHON)" || { echo "Handrail needs Python 3.11 or newer: make PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv --clear .venv </dev/null
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes \
		-r requirements.txt </dev/null
	-@$(BIN)/python -m compileall -qq -j 0 .venv/lib # on all cores, where pip would use one
	@touch $@

.venv/.packages: .venv/.lock $(PACKAGES:%=%/pyproject.toml)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-index --no-deps --no-build-isolation \
		$(PACKAGES:%=-e %) </dev/null
	@touch $@

# Node comes from the package index where the machine has none that is new enough. Without the servers their tests are
# skipped, which a CI run does not allow.
.venv/.servers: .venv/.packages requirements-node.txt tests/servers/package-lock.json tests/servers/install
	@tests/servers/install && touch $@ || { echo "make: going on without the npm model server" >&2; test -z "$$CI"; }

# The browser that pages are tested in. Without it their tests are skipped, which a CI run does not allow.
browser:
	@tests/cli/viewer/install || { echo "make: going on without Chromium" >&2; test -z "$$CI"; }
