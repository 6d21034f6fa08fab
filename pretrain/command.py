"""The command line of a pretraining run, and who may write into its folder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import tyro

from pretrain.checkpoint import STAGE as CHECKPOINT_STAGE
from pretrain.config import PRESETS, PretrainConfig, Runtime, SizeName, config_from, differences
from pretrain.masking import MASKINGS
from pretrain.objectives import OBJECTIVES, check
from pretrain.optim import SCHEDULES, branch_steps, stable_steps
from pretrain.sharing import SHARINGS
from pretrain.start import parse_sources
from provenance import UserError, read_manifest, verify_manifest, write_json

STAGE = "pretrain.train"
RUN = "run.json"
NETWORKS = sorted({part for system in OBJECTIVES.values() for part in system.parts})
OWN = ("checkpoints", *NETWORKS, "tensorboard", "log.jsonl", "manifest.json", RUN)
CHOICES: dict[str, Collection[str]] = {
    "objective": OBJECTIVES,
    "sharing": SHARINGS,
    "masking": MASKINGS,
    "schedule": SCHEDULES,
}
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
    continue_from: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NETWORK=MODEL ...")] = ()
    """Start from the weights of these folders or Hub ids, such as discriminator=... generator=...; a network
    that is not named starts from random weights."""
    decay_from: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """A checkpoint of a run with --schedule wsd: start from it and let the rate decay, with that run's
    settings. The result is that of a whole run of so many steps."""


def _stored(source: Path) -> PretrainConfig:
    """The settings of the run whose manifest this is."""
    manifest = read_manifest(source)
    if manifest["stage"] not in (STAGE, CHECKPOINT_STAGE):
        raise UserError(f"{source} is not the manifest of a pretraining run; give OUT/manifest.json")
    return config_from(manifest["config"])


def parse(arguments: Sequence[str]) -> Arguments:
    """Command line to settings: the preset (or ``--from``), then what the options change.

    Raises:
        UserError: an unknown name, settings that do not fit each other, a manifest of another stage, or a
            branch that is none.
        SystemExit: with status 2 for bad usage, such as an unknown size or none.
    """

    def parsed(config: PretrainConfig) -> Arguments:
        default = Arguments(size=tyro.MISSING, corpus=tyro.MISSING, out=tyro.MISSING, config=config)
        return tyro.cli(Arguments, default=default, args=list(arguments), prog="python -m pretrain.train")

    given = parsed(PRESETS[next((word for word in arguments if word in PRESETS), "small")])
    if given.decay_from is not None:
        base = _branch(given.decay_from)
    elif given.from_manifest is not None:
        base = _stored(given.from_manifest)
    else:
        base = PRESETS[given.size]
    final = parsed(base)
    for name, choices in CHOICES.items():
        if (value := getattr(final.config, name)) not in choices:
            raise UserError(f"{name} {value!r} is not known; choose of {', '.join(choices)}")
    check(final.config)
    system = OBJECTIVES[final.config.objective]
    parse_sources(final.continue_from, list(system.parts), system.given)
    if final.decay_from is not None:
        _check_branch(final.decay_from, base, final.config)
    return final


def _branch(checkpoint: Path) -> PretrainConfig:
    """The settings of the shortest run whose rate begins to decay at ``checkpoint``, or after it."""
    config = _stored(checkpoint)
    if config.schedule != "wsd":
        raise UserError(f"{checkpoint} is of a run with schedule {config.schedule}; a branch needs wsd")
    moving = [
        name for name in ("final_mask_fraction", "final_temperature") if getattr(config, name) is not None
    ]
    if moving or len(OBJECTIVES[config.objective].stages(config)) > 1:
        what = moving[0] if moving else f"objective {config.objective}"
        raise UserError(
            f"{checkpoint} is of a run with {what}, which goes by the length of the run: "
            "a branch would not be a run of its own length; start one"
        )
    return replace(config, steps=branch_steps(_step(checkpoint), config.decay))


def _check_branch(checkpoint: Path, base: PretrainConfig, config: PretrainConfig) -> None:
    changed = differences(base, replace(config, steps=base.steps))
    if changed:
        raise UserError(f"a branch has the settings of its run; leave out {'; '.join(changed)}")
    if stable_steps(config.steps, config.decay) < _step(checkpoint):
        raise UserError(
            f"in a run of {config.steps} steps the rate decays before {checkpoint.name}; "
            f"give --steps of at least {base.steps}"
        )


def _step(checkpoint: Path) -> int:
    step = read_manifest(checkpoint).get("step")
    if not isinstance(step, int):
        raise UserError(f"{checkpoint} is no checkpoint; give RUN/checkpoints/step-<n>")
    return step


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
            changes = (
                "; ".join(differences(found["config"], run["config"])) or "the corpus or the first weights"
            )
            raise UserError(
                f"{out} holds a finished run, other settings ({changes}); add --overwrite or change --out"
            )
        verify_manifest(out, STAGE)
        return False
    if (out / RUN).exists():
        found = _read_run(out / RUN)
        if found["config_id"] != run["config_id"]:
            changes = (
                "; ".join(differences(found["config"], run["config"])) or "the corpus or the first weights"
            )
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
