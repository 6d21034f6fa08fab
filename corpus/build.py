"""From raw text to packed rows: ``python -m corpus.build INPUT... --out DIR``."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow.parquet as pq
import tyro

from corpus import decontaminate, report, rows, steps
from corpus.config import PRESETS, WIKI_DUMP, CorpusConfig, Runtime
from corpus.download import download
from corpus.engine import run_step
from corpus.script import conversion_facts, converter
from corpus.sources import expand_inputs, validate_input
from corpus.vocab import vocab_path
from provenance import (
    MANIFEST,
    UserError,
    atomic_file,
    config_id,
    hold,
    read_manifest,
    run_cli,
    sha256_file,
    verify_manifest,
    write_manifest,
    write_text,
)

STAGE = "corpus.build"
DATA = Path(__file__).resolve().parent.parent / "data"
SAMPLE = Path(__file__).parent / "sample"
WORK = ".work"
SHOWN = 5  # examples of each rule in the report


@dataclass(frozen=True)
class Options:
    """Build a corpus: read, clean, drop duplicates, tokenize and pack into rows.

    Attributes:
        inputs: files, folders or quoted globs: MediaWiki XML, WARC, JSON lines, text, Parquet; .gz, .bz2.
            None: preset wiki downloads the zhwiki dump, preset sample takes the bundled files.
        out: folder for the corpus. Default: data/corpus/<config id>, printed at the end.
        preset: the settings that the options below start from.
        replay: manifest.json of a corpus whose settings (and inputs, if none are given) are taken.
        overwrite: build anew even if the output folder holds a corpus or other files.
        decontaminate: data folder of benchmark files; their overlap with the corpus is reported.
        vocab: vocab.txt to use instead of the cached or fetched one; must be BERT-Chinese's.
    """

    inputs: tyro.conf.Positional[tuple[str, ...]] = ()
    out: Path | None = None
    preset: Literal["wiki", "web", "sample"] = "wiki"
    replay: Annotated[Path | None, tyro.conf.arg(name="from")] = None
    overwrite: bool = False
    decontaminate: Path | None = None
    vocab: Path | None = None
    config: CorpusConfig = PRESETS["wiki"]
    runtime: Runtime = field(default_factory=Runtime)


# --- options --------------------------------------------------------------------------------------


def _value_of(name: str, arguments: Sequence[str]) -> str | None:
    """The value of one option before the whole command line is parsed: it decides the other defaults."""
    for i, argument in enumerate(arguments):
        if argument == name and i + 1 < len(arguments):
            return arguments[i + 1]
        if argument.startswith(f"{name}="):
            return argument.split("=", 1)[1]
    return None


def parse(arguments: Sequence[str]) -> Options:
    """Options from the command line, over the chosen preset or the manifest to replay."""
    preset, replay = _value_of("--preset", arguments) or "wiki", _value_of("--from", arguments)
    config, inputs = PRESETS.get(preset, PRESETS["wiki"]), ()
    if replay is not None:
        manifest = read_manifest(Path(replay).parent if Path(replay).name == MANIFEST else Path(replay))
        stored: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in manifest["config"].items()
        }
        try:
            config, inputs = CorpusConfig(**stored), tuple(manifest["runtime"]["inputs"])
        except (TypeError, KeyError):
            raise UserError(f"{replay} is not the manifest of a corpus of this version") from None
    default = Options(inputs=inputs, config=config)
    return tyro.cli(
        Options,
        prog="corpus.build",
        args=list(arguments),
        default=default,
        config=(tyro.conf.OmitArgPrefixes,),
    )


def check_config(config: CorpusConfig) -> None:
    """Raises UserError for settings that the command line parser cannot judge."""
    if config.convert != "none":
        converter(config.convert)
    for entry in config.sample:
        name, _, share = entry.partition("=")
        try:
            good = bool(name) and 0 < float(share) <= 1
        except ValueError:
            good = False
        if not good:
            raise UserError(
                f"--sample {entry} is not SOURCE=SHARE with a share between 0 and 1, such as history=0.3"
            )
    if not 0 <= config.held_out < 1:
        raise UserError(f"--held-out {config.held_out} is not a share between 0 and 1")


def find_inputs(patterns: Sequence[str], preset: str, progress: bool) -> list[Path]:
    """The input files, checked; without patterns those of the preset.

    Raises:
        UserError: nothing is found, a file is not what its name says, or the dump cannot be downloaded.
    """
    if not patterns and preset == "wiki":
        dump = DATA / "downloads" / WIKI_DUMP.rsplit("/", 1)[1]
        try:
            patterns = [str(download(WIKI_DUMP, dump, progress=progress))]
        except UserError as error:
            raise UserError(f"{error}; or give your own files: make corpus INPUT='path-or-glob'") from None
    elif not patterns and preset == "sample":
        patterns = [str(SAMPLE / "zhwiki-sample.xml"), str(SAMPLE / "web-sample.warc.gz")]
    elif not patterns:
        raise UserError(f"preset {preset} needs input files; give files, folders or a quoted glob")
    paths = expand_inputs(patterns)
    for path in paths:
        validate_input(path)
    return paths


def code_hash() -> str:
    """Of the source of this package: intermediate files of other code are never taken up again."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


# --- the build ------------------------------------------------------------------------------------


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


def run_steps(job: steps.Job, runtime: Runtime, benchmark: decontaminate.Benchmark | None) -> None:
    """All steps in order; what an earlier run finished is not done again."""
    if benchmark is not None:
        with atomic_file(job.work / "benchmark.npy") as partial, open(partial, "wb") as file:
            np.save(file, benchmark.table)
    run_step("read", steps.read_step, len(job.inputs), job, runtime)
    expected = sum(part["blocks"] for part in steps.read_counts(job, "read"))
    ranks = len(steps.blocks(job))
    if ranks != expected:
        raise UserError(f"step read left {ranks} blocks instead of {expected}; run again with --overwrite")
    if not ranks:
        raise UserError("the input holds no document; give other files")
    run_step("clean", steps.clean_step, ranks, job, runtime)
    run_step("duplicates", steps.duplicates_step, 1, job, runtime)
    run_step("pack", steps.pack_step, ranks, job, runtime)


def assemble(
    job: steps.Job, name: str, identity: Any, benchmark: decontaminate.Benchmark | None, facts: dict[str, Any]
) -> Path:
    """The finished corpus folder, still inside the work folder."""
    final = job.work / "final"
    shutil.rmtree(final, ignore_errors=True)
    final.mkdir()
    counted: dict[str, int] = {}
    for kind in ("documents", "rejected"):
        (final / kind).mkdir()
        for path in sorted((job.work / kind).glob("*.parquet")):
            rows.link_or_copy(path, final / kind / path.name)
            counted[f"{kind}/{path.name}"] = pq.read_metadata(path).num_rows
    for length in job.config.lengths:
        for split in ("train", "heldout"):
            source, target = job.work / f"rows-{length}" / split, final / f"rows-{length}" / split
            parts = [source / f"{rank:05d}.arrow" for rank in range(len(steps.blocks(job)))]
            if missing := [part.name for part in parts if not part.is_file()]:
                raise UserError(
                    f"step pack left no {missing[0]} in rows-{length}; run again with --overwrite"
                )
            files = rows.finish_split(target, split, parts, one_file=split == "heldout")
            counted |= {f"rows-{length}/{split}/{file}": n for file, n in files.items()}
    shutil.copyfile(job.vocab, final / "vocab.txt")
    summary = report.summarize(job, benchmark)
    if not summary["documents"]:
        raise UserError(
            "no document passed the rules: lower --min-han or --min-han-share, or give other files"
        )
    examples = rule_examples(final / "rejected")
    write_text(final / "report.md", report.markdown(summary, job.config, name, examples))
    write_text(final / "report.html", report.web_page(summary, job.config, name, examples))
    counts = {key: summary[key] for key in ("documents", "totals", "rules", "packed", "skipped", "blocks")}
    counts |= {"overlap": summary["overlap"]} if "overlap" in summary else {}
    write_manifest(
        final, stage=STAGE, config=job.config, identity=identity, rows=counted, counts=counts, **facts
    )
    return final


def rule_examples(folder: Path) -> dict[str, list[str]]:
    """A few rejected texts of each rule, spread over the shards."""
    examples: dict[str, list[str]] = {}
    for path in sorted(folder.glob("*.parquet")):
        taken: dict[str, int] = {}
        for record in pq.read_table(path).to_pylist():
            texts = examples.setdefault(record["rule"], [])
            if len(texts) < SHOWN and taken.get(record["rule"], 0) < 2 and record["text"] not in texts:
                texts.append(record["text"])
                taken[record["rule"]] = taken.get(record["rule"], 0) + 1
    return dict(sorted(examples.items()))


def publish(final: Path, out: Path) -> None:
    """Move the finished corpus into ``out``, its manifest last."""
    (out / MANIFEST).unlink(missing_ok=True)
    names = {path.name for path in final.iterdir()}
    old = [path for path in out.iterdir() if path.name in names or path.name.startswith("rows-")]
    for path in old:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name in sorted(names - {MANIFEST}):
        os.replace(final / name, out / name)
    os.replace(final / MANIFEST, out / MANIFEST)


@contextlib.contextmanager
def _clean_after_mistake(out: Path, work: Path) -> Iterator[None]:
    """Bad input leaves nothing behind; a run that was killed leaves its work to be taken up again."""
    existed = out.is_dir() and any(path.name != ".lock" for path in out.iterdir())
    try:
        yield
    except UserError:
        shutil.rmtree(work, ignore_errors=True)
        if not existed:
            shutil.rmtree(out, ignore_errors=True)
        raise


def build(options: Options) -> Path:
    """Build the corpus, or find it already built; the folder.

    Raises:
        UserError: a setting, an input or the output folder is wrong.
    """
    config, runtime = options.config, options.runtime
    check_config(config)
    paths = find_inputs(options.inputs, options.preset, runtime.progress)
    vocab = vocab_path(options.vocab)
    benchmark = decontaminate.load_benchmark(options.decontaminate) if options.decontaminate else None
    inputs = [{"name": path.name, "sha256": sha256_file(path)} for path in paths]
    identity: dict[str, Any] = {"config": config, "inputs": inputs}
    if options.decontaminate:
        identity["benchmark"] = [sha256_file(options.decontaminate / name) for name in benchmark.files]  # type: ignore[union-attr]
    name = config_id(identity)
    out = options.out or DATA / "corpus" / name
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file; choose a folder for --out")
    if reusable(out, name, options.overwrite):
        print(f"corpus {name} is there already and whole: reused", file=sys.stderr)
        return out
    work = out / WORK / name / code_hash()
    with hold(out), _clean_after_mistake(out, work):
        if options.overwrite:
            shutil.rmtree(out / WORK, ignore_errors=True)
        work.mkdir(parents=True, exist_ok=True)
        job = steps.Job(config, tuple(path.resolve() for path in paths), work.resolve(), vocab.resolve())
        if benchmark is not None:
            job = dataclasses.replace(job, benchmark=True)
        started = time.monotonic()
        run_steps(job, runtime, benchmark)
        facts = {
            "name": name,
            "inputs": inputs,
            "conversion": conversion_facts(config.convert),
            "code": work.name,
            "runtime": {"workers": runtime.workers, "inputs": [str(path) for path in paths]},
            "seconds": round(time.monotonic() - started, 1),
        }
        final = assemble(job, name, identity, benchmark, facts)
        publish(final, out)
        if not runtime.keep_work:
            shutil.rmtree(out / WORK, ignore_errors=True)
    return out


def main() -> None:
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # the workers are the parallelism
    options = parse(sys.argv[1:])
    if not sys.stderr.isatty():
        options = dataclasses.replace(options, runtime=dataclasses.replace(options.runtime, progress=False))
    print(build(options))


if __name__ == "__main__":
    run_cli(main)
