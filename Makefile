# The doors of the project. Each does its own set-up; CI runs the same ones (.ci/run).

PYTHON_IN_VENV := .venv/bin/python
COMPILE := .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--custom-compile-command "make requirements"

WORKERS ?= 2

TARGET ?= bundle
SECONDS ?= 600

# `make run` keeps its memory in the checkout, where git ignores it: what is tried out here does not
# touch the memory somebody lives with in their own home, and is still there tomorrow. It is not
# made again by anything, so `make clean` leaves it.
RUN_HOME ?= .scrubjay

.DEFAULT_GOAL := help
.PHONY: help setup run test test-clients test-cluster check docs fuzz bench bench-peers requirements clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile
	@echo "  ARGS=... is passed on: make test ARGS='-k forget', make run ARGS='--port 9000'"

setup:  ## make .venv from the hashed requirements (only when something changed)
	@tools/setup.sh

run: setup  ## serve on this machine; DEMO=1 tells a story on a throw-away home, ONCE=1 then ends
ifneq ($(filter-out 0,$(DEMO)),)
	@exec $(PYTHON_IN_VENV) examples/demo.py $(if $(filter-out 0,$(ONCE)),--once) $(ARGS)
else
	@echo "Its memory is kept in $(RUN_HOME); docs/service.md says what it can do."
	@exec env SCRUBJAY_HOME='$(RUN_HOME)' .venv/bin/scrubjay serve --key-file '$(RUN_HOME)/key' $(ARGS)
endif

# Test processes share the cores: the threads of a BLAS, which the encoder uses, would slow all down.
test: export OPENBLAS_NUM_THREADS := 1
test: setup  ## run all tests; MORE=1 also runs the long loops
	$(PYTHON_IN_VENV) -m pytest -n $(WORKERS) --dist worksteal $(if $(filter-out 0,$(MORE)),--more -o faulthandler_timeout=7200) $(ARGS)

test-clients: setup  ## install real programs by others and test with them; ONLY=NAME selects
	ONLY='$(ONLY)' tools/test_others.sh clients $(ARGS)

test-cluster: setup  ## install the servers of a cluster and test on them; ONLY=NAME selects
	ONLY='$(ONLY)' tools/test_others.sh cluster $(ARGS)

check: setup  ## lint, format, types, layers, budgets and the house rules
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy
	.venv/bin/lint-imports --no-logo
	$(PYTHON_IN_VENV) tools/house_counts.py --check
	$(PYTHON_IN_VENV) -m pytest -q tests/test_house.py

docs: setup  ## make the pages again that are made from the code, and the table of promises
	$(PYTHON_IN_VENV) tools/api_reference.py
	$(PYTHON_IN_VENV) tools/cli_page.py
	$(PYTHON_IN_VENV) tools/openapi.py
	$(PYTHON_IN_VENV) tools/js_client.py
	$(PYTHON_IN_VENV) tools/promises.py

fuzz: setup  ## fuzz TARGET (codec, bundle, analysis, secrets, history) for SECONDS; installs atheris aside
	@$(PYTHON_IN_VENV) -m pip install --quiet --require-hashes --target build/fuzz -r requirements/fuzz.txt
	PYTHONPATH=build/fuzz:. $(PYTHON_IN_VENV) -m tests.fuzz $(TARGET) build/corpus/$(TARGET) \
		-max_total_time=$(SECONDS) -artifact_prefix=build/$(TARGET)- $(ARGS)

bench: setup  ## measure the built wheel in a fresh environment; wrk presses the service
	@rm -rf build/bench build/wheel && $(PYTHON_IN_VENV) -m venv build/bench
	@$(PYTHON_IN_VENV) -m build --wheel --no-isolation --outdir build/wheel . > build/wheel.log
	@.venv/bin/uv pip install --quiet --python build/bench --require-hashes -r requirements/dev.txt
	@.venv/bin/uv pip install --quiet --python build/bench --no-deps build/wheel/*.whl
	build/bench/bin/python -m bench $(ARGS)

bench-peers: setup  ## measure other memory systems beside ours (installs them, 15 minutes)
	$(PYTHON_IN_VENV) -m bench.peers $(ARGS)

requirements: setup  ## re-make the hashed requirements from pyproject.toml and requirements/dev.in
	$(COMPILE) $(ARGS) pyproject.toml -o requirements/runtime.txt
	$(COMPILE) $(ARGS) --all-extras pyproject.toml requirements/dev.in -o requirements/dev.txt
	$(COMPILE) $(ARGS) requirements/s3_server.in -o requirements/s3_server.txt

clean:  ## remove everything that can be made again
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis bench/scratch
	find src tests bench examples tools -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
