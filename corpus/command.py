"""The command line of a build: presets, overrides, input files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import tyro

from corpus.config import LENGTHS, PRESETS, CorpusConfig, Runtime, weights_of
from corpus.inputs.dump import MIRROR, fetch_dump
from corpus.inputs.hub import Dataset
from corpus.inputs.sources import expand_inputs, validate_input
from corpus.rules import blocklist
from corpus.script import converter
from corpus.tokens import dictionary
from provenance import UserError, read_manifest

DATA = Path(__file__).resolve().parent.parent / "data"
SAMPLE = Path(__file__).parent / "sample"


_MOST = 1 << 31  # documents or characters that a setting may ask for
_PRESET: Any = Literal[tuple(PRESETS)]  # one of their names
_argument = partial(tyro.conf.arg, help_behavior_hint="")  # their defaults are said in words


@dataclass(frozen=True)
class Options:
    """Build a corpus: read, clean, drop duplicates, tokenize and pack into rows.

    Attributes:
        inputs: files, folders or quoted globs: MediaWiki XML, WARC, WET, HTML, JSON lines, text, Parquet,
            also with .gz, .bz2, .xz, .zst; or datasets:ORG/NAME[:CONFIG[:SPLIT]] of the Hugging Face Hub.
            None: preset wiki downloads the zhwiki dump, preset sample takes the bundled files.
        out: folder for the corpus. Default: data/corpus/<config id>, printed at the end.
        preset: the settings that the options below start from (their defaults are shown for web).
            Default: web where inputs are given, else wiki.
        replay: manifest.json of a corpus whose settings (and inputs, if none are given) are taken.
        overwrite: build anew even if the output folder holds a corpus or other files.
        benchmarks: folder of benchmark files, <task>/<split>.<suffix>; their overlap with the corpus is
            reported. With --decontaminate, lines that hold development or test text are dropped.
        dump: date of the zhwiki dump that preset wiki takes, such as 20260901; latest: the newest in
            data/downloads, or the newest there is.
        mirror: server that has it, with Wikimedia's layout of folders.
        vocab: vocab.txt to use instead of the cached or fetched one; must be BERT-Chinese's.
    """

    inputs: Annotated[tuple[str, ...], tyro.conf.Positional, _argument(metavar="[INPUT ...]")] = ()
    out: Annotated[Path | None, _argument(metavar="DIR")] = None
    preset: Annotated[str | None, _argument(constructor=_PRESET | None)] = None
    replay: Annotated[Path | None, _argument(name="from", metavar="FILE")] = None
    overwrite: bool = False
    benchmarks: Annotated[Path | None, _argument(metavar="DIR")] = None
    dump: str = "latest"
    mirror: str = MIRROR
    vocab: Annotated[Path | None, _argument(metavar="FILE")] = None
    config: CorpusConfig = PRESETS["web"]
    runtime: Runtime = field(default_factory=Runtime)


def _stored(manifest: Path) -> Options:
    """Settings, inputs and benchmarks of the corpus whose manifest this is."""
    found = read_manifest(manifest)
    try:
        stored: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in found["config"].items()
        }
        config, inputs = CorpusConfig(**stored), found["runtime"]["inputs"]
        folder = Path(found["runtime"]["benchmarks"]) if found["runtime"]["benchmarks"] else None
        kinds = get_type_hints(CorpusConfig)
        if not isinstance(inputs, list) or not _is_a(tuple(inputs), tuple[str, ...]):
            raise TypeError
        if not all(_is_a(getattr(config, name), kind) for name, kind in kinds.items()):
            raise TypeError
    except (TypeError, KeyError):
        raise UserError(
            f"{manifest} is not the manifest of a corpus of this version; give another one with --from"
        ) from None
    return Options(inputs=tuple(inputs), benchmarks=folder, config=config)


def _is_a(value: Any, kind: Any) -> bool:
    """Whether a value from a file is what a setting of this type can be."""
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    if get_origin(kind) is Union:
        return any(_is_a(value, each) for each in get_args(kind))
    if get_origin(kind) is tuple:
        return isinstance(value, tuple) and all(type(each) is get_args(kind)[0] for each in value)
    return type(value) is kind or (kind is float and type(value) is int)


def parse(arguments: Sequence[str]) -> Options:
    """Options from the command line, over the chosen preset or the manifest to replay.

    Raises:
        UserError: the manifest is no corpus manifest, or a name is not UTF-8.
    """
    for argument in arguments:
        if re.search("[\ud800-\udfff]", argument):  # as Python spells what is not UTF-8
            raise UserError(f"{argument} is not UTF-8; rename the file or folder")

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
        return parsed(_stored(given.replay))
    preset = given.preset or ("web" if given.inputs else "wiki")
    return parsed(Options(preset=preset, config=PRESETS[preset]))


def check_config(config: CorpusConfig) -> None:
    """Raises UserError for settings that the command line parser cannot judge."""
    if not config.text_key:
        raise UserError("--text-key is empty; name the key or column that holds the text")
    if config.convert != "none":
        converter(config.convert)
    blocklist.pattern(config.blocklist)  # a list that cannot be read is found before the work
    dictionary.words(config.dictionary)
    weights_of(config)
    for entry in fields(config):
        name, value = f"--{entry.name.replace('_', '-')}", getattr(config, entry.name)
        if isinstance(value, float) and not 0 <= value <= 1:
            raise UserError(f"{name} {value} is not a share between 0 and 1")
        if isinstance(value, int) and not 0 <= value < _MOST and entry.name != "seed":
            raise UserError(f"{name} {value} is not a number from 0 to {_MOST - 1}")
    if config.held_out == 1:
        raise UserError("--held-out 1 leaves no document to train on")
    if wrong := [length for length in config.lengths if length not in LENGTHS]:
        raise UserError(f"--length {wrong[0]} is not a number of tokens from {LENGTHS[0]} to {LENGTHS[-1]}")
    if not config.lengths:
        raise UserError("--length names no number of tokens; give one or more, such as 128")
    if config.min_fragment > min(config.lengths):
        raise UserError(
            f"--min-fragment {config.min_fragment} is more than a row of {min(config.lengths)} tokens holds"
        )


def find_inputs(options: Options) -> list[Path | Dataset]:
    """The inputs, checked; where none are given those of the preset.

    Raises:
        UserError: nothing is found, a file is not what its name says, or the dump cannot be downloaded.
    """
    patterns: Sequence[str] = options.inputs
    if not patterns and options.preset == "wiki":
        try:
            dump = fetch_dump(DATA / "downloads", options.dump, options.mirror, options.runtime.progress)
        except UserError as error:
            raise UserError(f"{error}; or give your own files: make corpus INPUT='path-or-glob'") from None
        patterns = [str(dump)]
    elif not patterns and options.preset == "sample":
        patterns = [str(SAMPLE / "zhwiki-sample.xml"), str(SAMPLE / "web-sample.warc.gz")]
    elif not patterns:
        raise UserError("no input: give files, folders or a quoted glob")
    inputs = expand_inputs(patterns)
    for path in inputs:
        validate_input(path, options.config)
    return inputs
