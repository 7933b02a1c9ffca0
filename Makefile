# Two commands do everything from a clean clone on Debian with Python 3.11 or newer: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
MLFLOW := mlflow==3.17.2 Flask flask-cors SQLAlchemy greenlet alembic Mako graphene graphql-core graphql-relay gunicorn \
	huey itsdangerous blinker
ASROOT := $(if $(filter 0,$(shell id -u)),,sudo -n)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export NO_MKDOCS_2_WARNING := 1

.PHONY: setup demo test test-all lint docs bench truth paper clean pictures

setup: .venv/ready

# Pages are tested in Debian's own browser, which Playwright drives; it is installed where it is missing and we may.
# torchvision's compiled part does not load beside a CPU build of torch, which breaks the import of transformers; it gets
# a folder of its own that only the tests of published values look into. MLflow's server wants an older pyarrow than
# others do, which it does not need to keep runs: it is in a folder of its own, too, for the tests of its sink.
.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet torch==2.13.0
	$(BIN)/pip install --quiet --editable '.[dev,docs,quantisation,estimators,launchers,energy,carbon,remote,sql,charts,dashboard,mlflow,wandb,tensorboard,otel,prometheus,cards,lightning,keras,deploy,loadgen,paper]'
	$(BIN)/pip install --quiet --no-deps --upgrade --target .venv/torchvision torchvision==0.28.0
	$(BIN)/pip install --quiet --no-deps --upgrade --target .venv/mlflow $(MLFLOW)
	@command -v chromium >/dev/null || $(ASROOT) apt-get install -qq --yes chromium >/dev/null \
		|| ($(ASROOT) apt-get update -qq && $(ASROOT) apt-get install -qq --yes chromium >/dev/null) \
		|| echo "no chromium: tests in a browser are skipped"
	touch $@

# What a first look needs, and no more: the tools of `setup` take minutes to fetch.
.venv/light:
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	test -e .venv/ready || $(BIN)/pip install --quiet torch==2.13.0 numpy
	test -e .venv/ready || $(BIN)/pip install --quiet --editable '.[dashboard]'
	touch $@

demo: .venv/light
	$(BIN)/bitwatt run --store .venv/demo examples/train_mnist_like.py

test: lint docs
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow and not gpu"

test-all: lint docs
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not gpu"

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: setup
	$(BIN)/mkdocs build --quiet --strict --site-dir .venv/site

# Those of docs/, by the tests that open pages in a browser.
pictures: setup
	BITWATT_PICTURES=$(CURDIR)/docs/images $(BIN)/python -m pytest -q tests/browser tests/dashboard

bench: setup
	$(BIN)/python benchmarks/overhead.py

# The estimators' part of docs/accuracy.md. MEASURE=DIR, the folder of the fpcount instrument, counts anew what is executed.
truth: setup
	$(BIN)/python benchmarks/accuracy/truth_page.py $(if $(MEASURE),--fpcount $(MEASURE))

# docs/paper.md with its figures: the paper's evaluation, measured anew. PART=figure2 measures one part only.
paper: setup
	$(BIN)/python -m examples.paper $(if $(PART),--only $(PART))

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache
