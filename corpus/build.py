"""From raw text to packed rows: ``python -m corpus.build INPUT... --out DIR``."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from corpus.assemble import STAGE, assemble, publish
from corpus.command import DATA, Options, check_config, find_inputs, parse
from corpus.config import Runtime, weights_of
from corpus.duplicates import decontaminate
from corpus.engine import WorkerError, run_step, start_forkserver
from corpus.inputs.sources import input_identity, plan, size_of
from corpus.job import Job, blocks, read_counts, write_array
from corpus.rules import blocklist
from corpus.script import conversion_facts
from corpus.steps.clean import clean_step
from corpus.steps.keep import keep_step
from corpus.steps.match import bands, match_step
from corpus.steps.pack import pack_step
from corpus.steps.read import read_step
from corpus.steps.recurring import hash_parts, recurring_step, sum_groups
from corpus.steps.sign import sign_step
from corpus.tokens import dictionary
from corpus.user_list import sha256_of
from corpus.vocab import vocab_path
from provenance import (
    MANIFEST,
    UserError,
    config_id,
    hold,
    read_manifest,
    run_cli,
    sha256_file,
    verify_manifest,
)

WORK = ".work"  # beside the result: moving into place must not cross file systems


def code_hash() -> str:
    """Of the source of this package: intermediate files of other code are never taken up again."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def reusable(out: Path, identity: str, overwrite: bool) -> bool:
    """Whether ``out`` already holds this corpus, whole.

    Raises:
        UserError: it holds something else and ``overwrite`` is off.
    """
    visible = [path for path in out.iterdir() if not path.name.startswith(".")] if out.is_dir() else []
    if not visible or overwrite:
        return False
    if not (out / MANIFEST).is_file():
        if (out / WORK / identity).is_dir():
            return False  # this build was killed while it moved its files into place
        raise UserError(f"{out} is not empty and holds no corpus; choose another --out or pass --overwrite")
    manifest = read_manifest(out)
    if manifest["stage"] != STAGE or manifest["config_id"] != identity:
        raise UserError(
            f"{out} holds {manifest['stage']} {manifest['config_id']}, not {identity}; "
            "choose another --out or pass --overwrite"
        )
    try:
        verify_manifest(out)
    except UserError as error:
        raise UserError(f"{error} with --overwrite") from None
    return True


def run_steps(job: Job, runtime: Runtime, benchmark: decontaminate.Benchmark | None) -> None:
    """All steps in order; what an earlier run finished is not done again."""
    if benchmark is not None:
        write_array(job.work / "benchmark.npy", np.stack([benchmark.table, benchmark.needs]))
    run_step(
        "read", read_step, len(job.parts), job, runtime, [sum(map(size_of, parts)) for parts in job.parts]
    )
    expected = sum(part["blocks"] for part in read_counts(job, "read"))
    ranks = len(blocks(job))
    if ranks != expected:
        raise UserError(f"step read left {ranks} blocks instead of {expected}; run again with --overwrite")
    if not ranks:
        counts = Counter[str]()
        for file in (file for part in read_counts(job, "read") for file in part["files"]):
            counts.update({k: n for k, n in file["skipped"].items() if k.startswith("skipped: ")})
        reasons = ", ".join(f"{k.removeprefix('skipped: ')} {n:,}" for k, n in counts.most_common())
        why = f" (left out: {reasons})" if reasons else ""
        raise UserError(f"the input holds no document{why}; give other files")
    check_sources(job)
    sizes = [path.stat().st_size for path in blocks(job)]
    run_step("clean", clean_step, ranks, job, runtime, sizes)
    sum_groups(job)
    run_step("recurring", recurring_step, hash_parts(job), job, runtime)
    run_step("sign", sign_step, ranks, job, runtime, sizes)
    run_step("match", match_step, bands(job.config), job, runtime)
    run_step("keep", keep_step, 1, job, runtime)
    run_step("pack", pack_step, ranks, job, runtime, sizes)


def check_sources(job: Job) -> None:
    """Raises UserError if a weight names a source that no document has."""
    known = {name for part in read_counts(job, "read") for name in part["sources"]}
    if missing := [name for name in weights_of(job.config) if name not in known]:
        there = ", ".join(sorted(known)[:20])
        raise UserError(f"--weights names source {missing[0]}, which no document has; there are: {there}")


@contextlib.contextmanager
def _clean_after_mistake(out: Path, work: Path) -> Iterator[None]:
    """Bad input leaves nothing behind; a run that was killed leaves its work to be taken up again."""
    existed = out.is_dir() and any(path.name != ".lock" for path in out.iterdir())
    try:
        yield
    except WorkerError:
        raise
    except UserError:
        shutil.rmtree(work.parent, ignore_errors=True)
        with contextlib.suppress(OSError):  # work of another configuration stays
            (out / WORK).rmdir()
        if not existed:
            shutil.rmtree(out, ignore_errors=True)
        raise


def build(options: Options) -> Path:
    """Build the corpus, or find it already built; the folder.

    Raises:
        UserError: a setting, an input or the output folder is wrong.
    """
    config, runtime = options.config, options.runtime
    if runtime.executor == "local" and runtime.workers > 1:
        start_forkserver()
    check_config(config)
    if runtime.workers < 1:
        raise UserError(f"--workers {runtime.workers} is no number of processes; give 1 or more")
    paths = find_inputs(options)
    vocab = vocab_path(options.vocab)
    inputs = [input_identity(path) for path in paths]
    identity: dict[str, Any] = {
        "config": config,
        "inputs": inputs,
        "blocklist": sha256_of(blocklist.content(config.blocklist)),
        "dictionary": sha256_of(dictionary.content(config.dictionary)),
    }
    benchmark = None
    if options.benchmarks is not None:
        benchmark = decontaminate.load_benchmark(options.benchmarks, config.convert)
        identity["benchmarks"] = {file: sha256_file(options.benchmarks / file) for file in benchmark.files}
    elif config.decontaminate:
        raise UserError(
            "--decontaminate needs the benchmark files: add --benchmarks DIR (make corpus: DATA=DIR)"
        )
    name = config_id(identity)
    out = options.out or DATA / "corpus" / name
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file; choose a folder for --out")
    if reusable(out, name, options.overwrite):
        other = read_manifest(out).get("code") != code_hash()
        note = " (built by another version of the code; --overwrite builds it anew)" if other else ""
        print(f"corpus {name} is there already and whole: reused{note}", file=sys.stderr)
        return out
    work = out / WORK / name / code_hash()
    with hold(out), _clean_after_mistake(out, work):
        if options.overwrite:
            shutil.rmtree(out / WORK, ignore_errors=True)
        work.mkdir(parents=True, exist_ok=True)
        job = Job(
            config=config,
            parts=plan(paths, config),
            work=work.resolve(),
            vocab=vocab.resolve(),
            benchmark=benchmark is not None,
            tokenizer=runtime.tokenizer,
        )
        started = time.monotonic()
        run_steps(job, runtime, benchmark)
        facts = {
            "name": name,
            "inputs": inputs,
            "benchmarks": identity.get("benchmarks", {}),
            "conversion": conversion_facts(config.convert),
            "code": work.name,
            "runtime": {
                "workers": runtime.workers,
                "inputs": [str(path) for path in paths],
                "benchmarks": options.benchmarks,
            },
            "seconds": round(time.monotonic() - started, 1),
        }
        final = assemble(job, name, identity, benchmark, facts)
        publish(final, out)
        if not runtime.keep_work:
            shutil.rmtree(out / WORK, ignore_errors=True)
    return out


def summary(out: Path) -> str:
    """A finished corpus in two lines: documents, rows and tokens of each length, where the report lies."""
    manifest = read_manifest(out)
    counts = manifest["counts"]
    kept, read = counts["documents"], counts["totals"]["documents_in"]
    rows = []
    for length, packed in counts["packed"]["rows"].items():
        train, held_out = packed.get("rows_train", 0), packed.get("rows_heldout", 0)
        tokens = packed.get("tokens_train", 0) + packed.get("tokens_heldout", 0)
        rows.append(f"{train + held_out:,} rows of up to {length} ({held_out:,} held out, {tokens:,} tokens)")
    return (
        f"corpus {manifest['name']}: {kept:,} of {read:,} documents, {', '.join(rows)}\n"
        f"report: {out / 'report.html'}"
    )


def main() -> None:
    """Entry point of ``python -m corpus.build``: the folder on stdout, everything else on stderr."""
    warnings.formatwarning = lambda message, *_, **__: f"warning: {message}\n"
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # the workers are the parallelism
    out = build(parse(sys.argv[1:]))
    print(summary(out), file=sys.stderr)
    print(out)


if __name__ == "__main__":
    run_cli(main)
