"""Checkpoints: whole or absent, verified before they are read."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from pretrain.model import Electra
from pretrain.optim import Adam, LossScale
from provenance import UserError, atomic_folder, verify_manifest, write_manifest

STATE = "state.pt"
STAGE = "pretrain.checkpoint"


def checkpoints(run: Path) -> list[tuple[int, Path]]:
    """(step, folder) of the checkpoints under a run folder, oldest first; unverified."""
    found = []
    for path in (run / "checkpoints").glob("step-*"):
        if match := re.fullmatch(r"step-(\d+)", path.name):
            found.append((int(match[1]), path))
    return sorted(found)


def save_checkpoint(
    run: Path,
    step: int,
    model: Electra,
    optimizer: Adam,
    scale: LossScale,
    *,
    identity: dict[str, Any],
    corpus: Path,
    name: str,
    counts: Any,
) -> Path:
    """Write ``run/checkpoints/step-<n>`` atomically.

    ``identity`` is what the run's id is made of: ``config``, and ``corpus`` by its config id and contents.

    Nothing random is stored: every draw of a step derives from (seed, step, row) or (seed, step, process).
    """
    path = run / "checkpoints" / f"step-{step}"
    with atomic_folder(path) as partial:
        state = {
            "step": step,
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scale": scale.state_dict(),
        }
        with open(partial / STATE, "wb") as file:  # torch's own writer does not say that a disk is full
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())  # older ones are deleted next: after a power cut this one must be there
        write_manifest(
            partial,
            stage=STAGE,
            config=identity["config"],
            identity=identity,
            corpus=identity["corpus"],
            parent=corpus,
            name=name,
            step=step,
            counts=counts,
        )
    return path


def prune_checkpoints(run: Path, keep: int, milestone_every: int | None) -> None:
    """Delete all but the last ``keep`` checkpoints and, if given, multiples of ``milestone_every`` steps."""
    for step, path in checkpoints(run)[:-keep]:
        if not milestone_every or step % milestone_every:
            shutil.rmtree(path)


def last_checkpoint(run: Path, say: Callable[[str], Any]) -> tuple[Path, dict[str, Any]] | None:
    """The newest checkpoint that verifies, and its manifest; each torn one is named through ``say``.

    Returns:
        None where there is no checkpoint yet.

    Raises:
        UserError: there are some, and all are torn.
    """
    for _, path in reversed(checkpoints(run)):
        try:
            return path, verify_manifest(path, STAGE)
        except UserError as error:
            say(f"passed over {path.name}: {error}")
    if checkpoints(run):
        raise UserError(
            f"no checkpoint under {run / 'checkpoints'} is whole; "
            "put one back from a copy, or start again with --overwrite"
        )
    return None


def load_checkpoint(
    path: Path,
    model: Electra,
    optimizer: Adam | None = None,
    scale: LossScale | None = None,
    device: torch.device | str = "cpu",
) -> int:
    """Put a checkpoint's weights (and moments, and loss scale) in place; returns its step."""
    state = torch.load(path / STATE, map_location=device, weights_only=True)
    model.load_state_dict(state["model"])
    model.tie()
    if optimizer is not None:
        optimizer.load_state_dict(state["optimizer"])
    if scale is not None:
        scale.load_state_dict(state["scale"])
    return int(state["step"])
