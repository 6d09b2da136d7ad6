# make setup     create .venv and install everything the project needs
# make test      lint, types and tests (sets up if needed)
# make test-all  the same with the slow tests
# make test-dist what is built to be installed: the wheels, the sdist (part of test-all)
# make fuzz      random chains against enumeration: FUZZ_SEED=0, FUZZ_SECONDS=60 on each build
# make test-gpu  the kernels for GPUs on a GPU, where there is one
# make lint      lint and types alone
# make docs      the documentation, into docs/_build/html
# make demo      train a template VAE on the built-in corpus, look at what it learnt, write with it
# make clean     remove what was built; runs/ stays

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
DOCS_READY := .venv/.docs-ready
FUZZ_SEED ?= 0
FUZZ_SECONDS ?= 60
FUZZ := --seed $(FUZZ_SEED) --seconds $(FUZZ_SECONDS) --chains inf
PARALLEL := --numprocesses auto --dist loadfile --no-loadscope-reorder
MODELS := $(BIN)/python -m models
TRAIN := $(MODELS) train --config models/configs
DEMO_TABLE := name[The Copper Kettle], eatType[pub], food[Georgian], area[old town]

.PHONY: setup test test-all test-dist fuzz test-gpu lint docs demo clean

setup: $(READY)

$(READY): setup.py pyproject.toml constraints.txt $(wildcard structdist/ops/native/csrc/*)
	@echo 'setting up .venv: some minutes, most of them for torch'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --constraint constraints.txt torch
	$(BIN)/pip install --constraint constraints.txt --editable '.[dev]'
	touch $(READY)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/pytest $(PARALLEL)

test-all: lint $(DOCS_READY)
	$(BIN)/pytest $(PARALLEL) -m 'slow or not slow'

test-dist: setup
	$(BIN)/pytest -m 'slow or not slow' tests/test_packaging.py

fuzz: setup
	$(BIN)/python -m tests.fuzz $(FUZZ)
	$(BIN)/python -m tests.fuzz.sanitized $(FUZZ)

test-gpu: setup
	$(BIN)/pytest -rs tests/ops/triton/test_on_gpu.py tests/ops/triton/test_launches.py

$(DOCS_READY): $(READY)
	$(BIN)/pip install --constraint constraints.txt --editable '.[docs]'
	touch $(DOCS_READY)

docs: $(DOCS_READY)
	$(BIN)/python -m sphinx -W --keep-going docs docs/_build/html

demo: setup
	rm -rf runs/demo runs/demo-rnnlm
	mkdir -p runs
	@echo 'Training with templates; beside it, and more quietly, without, to compare with:'
	($(TRAIN)/demo-rnnlm.yaml --run runs/demo-rnnlm && $(MODELS) evaluate runs/demo-rnnlm --threads 1) \
		> runs/demo-rnnlm.log 2>&1 & $(TRAIN)/demo.yaml --run runs/demo && wait $$!
	@tail -n 7 runs/demo-rnnlm.log
	@echo 'One table, three templates:'
	echo '$(DEMO_TABLE)' | $(MODELS) generate runs/demo --num-templates 3
	@echo 'Evaluating it, while a page about both is made:'
	$(MODELS) report runs/demo --compare runs/demo-rnnlm > runs/demo-report.log 2>&1 & \
		$(MODELS) evaluate runs/demo --samples 20 --show 8 --control 20 && wait $$!
	@tail -n 1 runs/demo-report.log
	@echo
	@echo 'What to try next:'
	@echo '  open runs/demo/report.html in a browser'
	@echo '  $(MODELS) templates runs/demo --keys name,food,area'
	@echo "  echo 'name[Aurora], food[Thai]' | $(MODELS) generate runs/demo --num-templates 2"
	@echo '  $(MODELS) data text --from FILE      # your own text, one sentence a line'
	@echo '  $(MODELS) --help'

clean:
	rm -rf .venv build dist docs/_build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -f structdist/ops/native/_kernels.* structdist/ops/native/not_built.txt
	find structdist models benchmarks tests -name __pycache__ -prune -exec rm -rf {} +
