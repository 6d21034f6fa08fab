#!/usr/bin/env bash
# systems.sh CORPUS RUNS [WRAPPER...]: every objective, sharing and masking for 1,000 steps of tiny, one after
# the other, then one table and one picture of all over operations (systems-runs.csv, systems.csv, systems.png).
# Networks share their embeddings and the generator is half as wide, as in the paper, where nothing else is said. A run that is finished is not started again. Run it in the folder of the project; about half an hour.
set -euo pipefail
corpus=$1 runs=$2
shift 2

run() { # NAME OPTIONS...
    local name=$1
    shift
    "${wrapper[@]}" .venv/bin/python -m pretrain.train tiny --corpus "$corpus" --out "$runs/$name" --resume \
        --steps 1000 --warmup 100 --eval-every 50 --eval-rows 256 --threads 1 --no-tensorboard --sharing embeddings --generator-fraction 0.5 "$@"
    all+=("$runs/$name")
}

wrapper=("$@") all=()
equal=(--generator-fraction 1)
run rtd
run rtd-none --sharing none
run rtd-all --sharing all "${equal[@]}"
run rtd-gdes --sharing gdes
run mlm --objective mlm
run rtd-masked --objective rtd-masked
run replace-mlm --objective replace-mlm
run all-tokens-mlm --objective all-tokens-mlm
run random-uniform --objective random
run random-unigrams --objective random --replacements unigrams
run two-stage --objective two-stage --sharing none "${equal[@]}"
run adversarial --objective adversarial
run frozen --objective frozen --sharing none --temperature 2 --final-temperature 1 \
    --continue-from generator="$runs/rtd/generator"
run rtd-ngram --masking ngram
run rtd-30-15 --mask-fraction 0.3 --final-mask-fraction 0.15
.venv/bin/python -m pretrain.curves "${all[@]}" --out results/pretrain-study --name systems --over flops
