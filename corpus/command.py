"""The command line of a build: presets, overrides, input files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from corpus.config import PRESETS, WIKI_DUMP, CorpusConfig, Runtime
from corpus.download import download
from corpus.script import converter
from corpus.sources import expand_inputs, validate_input
from provenance import UserError, read_manifest

DATA = Path(__file__).resolve().parent.parent / "data"
SAMPLE = Path(__file__).parent / "sample"


@dataclass(frozen=True)
class Options:
    """Build a corpus: read, clean, drop duplicates, tokenize and pack into rows.

    Attributes:
        inputs: files, folders or quoted globs: MediaWiki XML, WARC, JSON lines, text, Parquet; .gz, .bz2.
            None: preset wiki downloads the zhwiki dump, preset sample takes the bundled files.
        out: folder for the corpus. Default: data/corpus/<config id>, printed at the end.
        preset: the settings that the options below start from (their defaults are shown for web).
            Default: web where inputs are given, else wiki.
        replay: manifest.json of a corpus whose settings (and inputs, if none are given) are taken.
        overwrite: build anew even if the output folder holds a corpus or other files.
        decontaminate: data folder of benchmark files; their overlap with the corpus is reported.
        vocab: vocab.txt to use instead of the cached or fetched one; must be BERT-Chinese's.
    """

    inputs: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="[INPUT ...]")] = ()
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    preset: Literal["wiki", "web", "sample"] | None = None
    replay: Annotated[Path | None, tyro.conf.arg(name="from", metavar="FILE")] = None
    overwrite: bool = False
    decontaminate: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    vocab: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    config: CorpusConfig = PRESETS["web"]
    runtime: Runtime = field(default_factory=Runtime)


def _stored(manifest: Path) -> tuple[CorpusConfig, tuple[str, ...]]:
    """Settings and inputs of the corpus whose manifest this is."""
    found = read_manifest(manifest)
    try:
        stored: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in found["config"].items()
        }
        return CorpusConfig(**stored), tuple(found["runtime"]["inputs"])
    except (TypeError, KeyError, AttributeError):
        raise UserError(f"{manifest} is not the manifest of a corpus of this version") from None


def parse(arguments: Sequence[str]) -> Options:
    """Options from the command line, over the chosen preset or the manifest to replay.

    Raises:
        UserError: the manifest is no corpus manifest.
    """

    def parsed(default: Options) -> Options:
        return tyro.cli(
            Options,
            prog="python -m corpus.build",
            args=list(arguments),
            default=default,
            config=(tyro.conf.OmitArgPrefixes,),
        )

    given = parsed(Options())  # what is given decides what the rest falls back to
    if given.replay is not None:
        config, inputs = _stored(given.replay)
        return parsed(Options(inputs=inputs, config=config))
    preset = given.preset or ("web" if given.inputs else "wiki")
    return parsed(Options(preset=preset, config=PRESETS[preset]))


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


def find_inputs(patterns: Sequence[str], preset: str | None, progress: bool) -> list[Path]:
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
        raise UserError("no input: give files, folders or a quoted glob")
    paths = expand_inputs(patterns)
    for path in paths:
        validate_input(path)
    return paths
