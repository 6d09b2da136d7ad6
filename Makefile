# make setup     create .venv and install everything the project needs
# make test      lint, types and tests (sets up if needed)
# make test-all  the same with the slow tests
# make test-gpu  the kernels for GPUs on a GPU, where there is one
# make lint      lint and types alone
# make demo      train a template VAE on the built-in corpus, look at what it learnt, write with it
# make clean     remove what was built; runs/ stays

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
PARALLEL := --numprocesses auto --dist loadfile
TRAIN := $(BIN)/python -m models train --config models/configs
DEMO_TABLE := name[The Copper Kettle], eatType[pub], food[Georgian], area[old town]

.PHONY: setup test test-all test-gpu lint demo clean

setup: $(READY)

$(READY): setup.py pyproject.toml constraints.txt $(wildcard structdist/ops/native/csrc/*)
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt torch
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(READY)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/pytest $(PARALLEL)

test-all: lint
	$(BIN)/pytest $(PARALLEL) -m 'slow or not slow'

test-gpu: setup
	$(BIN)/pytest -rs tests/ops/triton/test_on_gpu.py tests/ops/triton/test_launches.py

demo: setup
	rm -rf runs/demo runs/demo-rnnlm
	mkdir -p runs
	$(TRAIN)/demo-rnnlm.yaml --run runs/demo-rnnlm > runs/demo-rnnlm.log 2>&1 & \
		$(TRAIN)/demo.yaml --run runs/demo && wait $$!
	$(BIN)/python -m models evaluate runs/demo-rnnlm
	$(BIN)/python -m models evaluate runs/demo --show 8 --control 50
	@echo 'One table, three templates:'
	echo '$(DEMO_TABLE)' | $(BIN)/python -m models generate runs/demo --num-templates 3
	$(BIN)/python -m models report runs/demo --compare runs/demo-rnnlm

clean:
	rm -rf .venv build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -f structdist/ops/native/_kernels*.so
	find structdist models benchmarks tests -name __pycache__ -prune -exec rm -rf {} +
