"""The command line of a pretraining run, and who may write into its folder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro

from pretrain.checkpoint import STAGE as CHECKPOINT_STAGE
from pretrain.config import PRESETS, PretrainConfig, Runtime, SizeName, config_from, differences
from pretrain.objectives import OBJECTIVES
from provenance import UserError, read_manifest, verify_manifest, write_json

STAGE = "pretrain.train"
RUN = "run.json"
OWN = ("checkpoints", "discriminator", "generator", "tensorboard", "log.jsonl", "manifest.json", RUN)
CORPORA = Path(__file__).resolve().parent.parent / "data" / "corpus"


@dataclass(frozen=True)
class Arguments:
    """python -m pretrain.train SIZE --corpus DIR --out DIR

    Pretrain a generator and a discriminator on a packed corpus; export both as transformers folders. The
    defaults shown are those of small, or of the SIZE before --help.
    """

    size: Annotated[SizeName, tyro.conf.Positional, tyro.conf.arg(metavar="SIZE")]
    """Preset the settings start from: tiny, mini, small, small-ex, base or large."""
    corpus: Annotated[str, tyro.conf.arg(metavar="DIR")]
    """Folder that corpus.build wrote, or a name under data/corpus/."""
    out: Annotated[Path, tyro.conf.arg(metavar="DIR")]
    """Folder of the run."""
    config: tyro.conf.OmitArgPrefixes[PretrainConfig]
    runtime: tyro.conf.OmitArgPrefixes[Runtime] = field(default_factory=Runtime)
    resume: bool = False
    """Go on from the last whole checkpoint under OUT; starts a run where there is none."""
    overwrite: bool = False
    """Delete what an earlier run left under OUT."""
    from_manifest: Annotated[Path | None, tyro.conf.arg(name="from", metavar="FILE")] = None
    """Take the settings from this manifest.json in place of the preset's."""


def _stored(source: Path) -> PretrainConfig:
    """The settings of the run whose manifest this is."""
    manifest = read_manifest(source)
    if manifest["stage"] not in (STAGE, CHECKPOINT_STAGE):
        raise UserError(f"{source} is not the manifest of a pretraining run; give OUT/manifest.json")
    return config_from(manifest["config"])


def parse(arguments: Sequence[str]) -> Arguments:
    """Command line to settings: the preset (or ``--from``), then what the options change.

    Raises:
        UserError: unknown objective, or a manifest of another stage.
        SystemExit: with status 2 for bad usage, such as an unknown size or none.
    """

    def parsed(config: PretrainConfig) -> Arguments:
        default = Arguments(size=tyro.MISSING, corpus=tyro.MISSING, out=tyro.MISSING, config=config)
        return tyro.cli(Arguments, default=default, args=list(arguments), prog="python -m pretrain.train")

    given = parsed(PRESETS[next((word for word in arguments if word in PRESETS), "small")])
    stored = given.from_manifest
    final = parsed(PRESETS[given.size] if stored is None else _stored(stored))
    if final.config.objective not in OBJECTIVES:
        raise UserError(
            f"objective {final.config.objective!r} is not known; choose of {', '.join(OBJECTIVES)}"
        )
    return final


def corpus_folder(name: str) -> Path:
    """The corpus folder a user means: a path, else a name under ``data/corpus``."""
    path = Path(name)
    if not path.is_dir() and (CORPORA / name).is_dir():
        path = CORPORA / name
    if not path.is_dir():
        there = ", ".join(sorted(p.name for p in CORPORA.glob("*") if p.is_dir())) or "nothing"
        raise UserError(f"corpus {name} is no folder, and data/corpus holds {there}; run corpus.build first")
    return path


def _read_run(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {key: found[key] for key in ("config_id", "config")}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{path} does not describe a run ({error!r}); add --overwrite to start again"
        ) from None


def claim(out: Path, run: dict[str, Any], *, resume: bool, overwrite: bool) -> bool:
    """Make ``out`` ready for the run; False where the same run is already finished there.

    Raises:
        UserError: another run, an unfinished one without ``resume``, or foreign files lie there.
    """
    if overwrite:
        for name in OWN:
            path = out / name
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    if (out / "manifest.json").exists():
        found = read_manifest(out)
        if found["config_id"] != run["config_id"]:
            changes = "; ".join(differences(found["config"], run["config"])) or "the corpus"
            raise UserError(
                f"{out} holds a finished run, other settings ({changes}); add --overwrite or change --out"
            )
        verify_manifest(out, STAGE)
        return False
    if (out / RUN).exists():
        found = _read_run(out / RUN)
        if found["config_id"] != run["config_id"]:
            changes = "; ".join(differences(found["config"], run["config"])) or "the corpus"
            raise UserError(
                f"{out} holds an unfinished run, other settings ({changes}); add --overwrite or change --out"
            )
        if not resume:
            raise UserError(
                f"{out} holds an unfinished run; add --resume to go on or --overwrite to start again"
            )
        return True
    if any(not p.name.startswith(".") for p in out.iterdir()):
        raise UserError(f"{out} is not empty and holds no run; choose another folder")
    write_json(out / RUN, run)
    return True
