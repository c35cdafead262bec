# make run and make test set everything up by themselves; they need Python, make and git.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
TORCH ?= torch==2.13.0
TORCH_INDEX ?= # an extra package index to take a particular build of torch from, where one is wanted
NPROC ?= 8

.PHONY: setup run test check format clean
setup: $(READY)

# torch goes first and alone, so that a build which is already there (or one from TORCH_INDEX) stays.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -c "import torch" 2>/dev/null || $(BIN)/pip install -q $(TORCH) $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))
	$(BIN)/pip install -q -c constraints.txt -e '.[dev,plot]'
	touch $@

run: $(READY)
	$(BIN)/morimon run --nproc $(NPROC)

test: $(READY)
	$(BIN)/python -m pytest -q

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
