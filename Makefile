# Every target sets up first; `make help` lists them. Variables are given as NAME=value on the command line.

VENV   := .venv
PY     := $(VENV)/bin/python
READY  := $(VENV)/.ready
PYTHON ?= python3

CORPUS ?= wiki
MODEL  ?= data/pretrain/small/discriminator
DATA   ?= data/tasks
SEEDS  ?= 10
PROCS  ?= 1
RESULTS ?= results/runs
TABLES ?= results/tables

LAUNCH = $(PY) -m $(if $(filter-out 1,$(PROCS)),pretrain.launch $(PROCS),pretrain.train)

.PHONY: help setup demo test check corpus fetch bench tables speed speed-accuracy
.DEFAULT_GOAL := help

help:  ## list the targets
	@grep -hE '^[a-z%-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

setup: $(READY)  ## virtual environment in .venv with the locked dependencies, and the vocabulary

# TORCH_INDEX=URL chooses CPU or CUDA wheels of torch; torch comes first, so that nothing else picks one.
$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "error: Python 3.11 or newer is needed; name one with PYTHON=..."; exit 1; }
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) $$(grep '^torch==' requirements.lock)
	$(PY) -m pip install --quiet -r requirements.lock
	$(PY) -m pip install --quiet --no-deps -e .
	$(PY) -m corpus.vocab
	touch $@

demo: $(READY)  ## the whole chain on the bundled sample, a few minutes on 2 cores
	$(PY) -m corpus.build --preset sample --out data/demo/corpus
	$(PY) -m pretrain.train tiny --corpus data/demo/corpus --out data/demo/pretrain --steps 300 --warmup 30 --learning-rate 2e-4 --resume
	$(PY) -m benchmarks.run data/demo/pretrain/discriminator --task all --seeds 2 --data benchmarks/sample --name demo-tiny --results data/demo/runs --predictions data/demo/predictions --epochs 20 --lr 3e-4 --batch-size 16
	$(PY) -m benchmarks.tables --results data/demo/runs --out data/demo/tables

test: $(READY)  ## the test suite
	$(PY) -m pytest -n 2

check: $(READY)  ## format, lint, types
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy

# A corpus is a preset (wiki, web, sample), a name under data/corpus/ or a folder, here and in pretraining.
# Of several inputs, quote one that holds a space: INPUT="'my notes/*.txt' more.jsonl". The report covers the task files in DATA.
FILES = $(if $(shell test -e "$(INPUT)" && echo yes),"$(INPUT)",$(INPUT))
PRESETS := wiki web sample
NAMED = $(if $(findstring /,$(CORPUS)),$(CORPUS),data/corpus/$(CORPUS))
# INPUT without a name for the corpus: data/corpus/<config id>, which the program prints.
WRITES = $(or $(OUT),$(if $(and $(INPUT),$(filter file,$(origin CORPUS))),,$(NAMED)))

corpus: $(READY)  ## CORPUS=wiki|web|sample|name|folder [INPUT='path-or-glob ...'] [WORKERS=n] [OUT=dir] [DATA=dir]
	$(PY) -m corpus.build $(if $(INPUT),$(FILES) $(if $(filter-out file,$(origin CORPUS)),$(patsubst %,--preset %,$(filter $(PRESETS),$(CORPUS)))),--preset "$(CORPUS)") $(if $(WRITES),--out "$(WRITES)") $(if $(WORKERS),--workers $(WORKERS)) $(if $(wildcard $(DATA)),--benchmarks "$(DATA)") $(ARGS)

pretrain-%: $(READY)  ## tiny mini small small-ex base large; CORPUS=name|folder [STEPS=n] [PROCS=n] [OUT=dir] [ARGS="--flag value"]
	$(LAUNCH) $* --corpus "$(CORPUS)" --out "$(or $(OUT),data/pretrain/$*)" $(if $(STEPS),--steps $(STEPS)) $(ARGS)

fetch: $(READY)  ## TASK=name|all [DATA=dir]: download the task files
	$(PY) -m benchmarks.fetch $(or $(TASK),all) --data $(DATA) $(ARGS)

bench: $(READY)  ## TASK=name|all [MODEL=folder-or-hub-id] [SEEDS=10] [DATA=dir] [JOBS=n] [RESULTS=dir TABLES=dir]
	@$(if $(TASK),,echo "error: name a task: make bench TASK=cmrc2018|drcd|xnli|chnsenticorp|lcqmc|bq|all"; exit 2)
	$(PY) -m benchmarks.run $(MODEL) --task $(TASK) --seeds $(SEEDS) --data $(DATA) --results $(RESULTS) $(if $(JOBS),--jobs $(JOBS)) $(ARGS)
	$(PY) -m benchmarks.tables --results $(RESULTS) --out $(TABLES)

tables: $(READY)  ## results/runs + results/reference -> results/tables [RESULTS=dir TABLES=dir]
	$(PY) -m benchmarks.tables --results $(RESULTS) --out $(TABLES)

speed: $(READY)  ## our speed against peers, side by side in one run -> results/speed
	$(PY) -m benchmarks.speed $(ARGS)

speed-accuracy: $(READY)  ## ours and the Trainer from the same start: are they equally accurate? -> results/speed
	$(PY) -m benchmarks.speed.accuracy $(ARGS)
