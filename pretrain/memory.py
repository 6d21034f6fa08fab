"""How much memory and disk a run needs, known before its first step."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from pathlib import Path

import psutil
import torch

from corpus.vocab import UNK
from pretrain.data import Batch
from pretrain.device import autocast
from pretrain.masking import masked_count
from pretrain.model import FILLED_UP
from pretrain.objectives import OBJECTIVES, Objective

# Resident on a CPU beside tensors: Python, the libraries and what these keep, as oneDNN its kernels. Measured
# on `mini` 16 x 128, `small` 32 x 128 and `base` 8 x 512: a tenth too much to a tenth too little
# (docs/pretraining.md, Machines).
PROGRAM = 850 * 2**20


def _batch(rows: int, length: int, chosen: int, device: torch.device) -> Batch:
    """Full rows; of which positions are chosen, memory does not depend on."""
    ids = torch.full((rows, length), UNK, device=device)
    return Batch(
        input_ids=ids,
        masked_ids=ids,
        token_type_ids=torch.zeros_like(ids),
        positions=torch.arange(chosen, device=device) % ids.numel(),
        attention_mask=torch.ones(rows, length, device=device),
        tokens=ids.numel(),
    )


def kept_for_backward(network: torch.nn.Module, forward: Callable[[], object]) -> int:
    """Bytes that ``forward`` keeps for the backward pass; the weights of ``network`` are not among them."""
    weights = {p.untyped_storage().data_ptr() for p in network.parameters()}
    storages: dict[int, torch.UntypedStorage] = {}  # held, or another tensor could get the same address

    def pack(tensor: torch.Tensor) -> None:  # a tensor given back here would hold the graph that holds it
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            storages[storage.data_ptr()] = storage

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda nothing: nothing):
        forward()
    return sum(storage.nbytes() for storage in storages.values())


def _kept(objective: Objective, batch: Batch, step: int, device: torch.device) -> int:
    """Bytes that one forward pass keeps for the backward one."""
    with autocast(device, objective.config.dtype):
        return kept_for_backward(objective, lambda: objective(batch, step))


def kept_by_a_pass(objective: Objective, rows: int, device: torch.device) -> int:
    """Bytes that a forward pass over ``rows`` full rows keeps for the backward one, where a run needs most.

    Found by passes over one and two rows: the rest is a straight line in rows and chosen positions. Draws
    from torch's global generator.
    """
    config = objective.config
    fraction = max(config.mask_fraction, config.final_mask_fraction or 0)
    places = rows * masked_count(config.length, config.length, fraction) / FILLED_UP
    found = []
    for stage in OBJECTIVES[config.objective].stages(config):
        one, two, more = (
            _kept(objective, _batch(n, config.length, chosen, device), stage.first, device)
            for n, chosen in ((1, FILLED_UP), (2, FILLED_UP), (1, 2 * FILLED_UP))
        )
        found.append(one + (rows - 1) * (two - one) + round((places - 1) * (more - one)))
    return max(found)


def room_of_a_process(device: torch.device, processes: int) -> int:
    """Bytes that each of ``processes`` can have on ``device``: what it holds already, and its share of what
    is free. On GPUs each has one of its own."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0] + torch.cuda.memory_reserved(device)
    return psutil.Process().memory_info().rss + available_memory() // processes


# Control groups of version 2 and 1: by the controllers that /proc/self/cgroup names, the folder, the files
# with limit and use, and what of memory.stat counts the files that can be dropped.
_GROUPS = {
    "": ("", "memory.max", "memory.current", "inactive_file"),
    "memory": ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}


def available_memory(groups: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> int:
    """Bytes that processes can still take: of the machine, or of the control group (Slurm, a container) that
    this process is in, where it or one above it allows less.

    Args:
        groups: where the groups are mounted.
        own: the file that names this process's groups.
    """
    free = [psutil.virtual_memory().available]
    lines: list[str] = []
    with contextlib.suppress(OSError):  # only Linux has groups
        lines = own.read_text(encoding="utf-8").splitlines()
    for line in lines:
        _, controllers, name = line.split(":", 2)
        if controllers not in _GROUPS:
            continue
        folder, limit, use, droppable = _GROUPS[controllers]
        lowest = groups / folder / name.strip("/")
        for group in (lowest, *lowest.parents):
            with contextlib.suppress(OSError, ValueError):  # no limit: there is no such file, or it says max
                most, used = (int((group / file).read_text()) for file in (limit, use))
                counts = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
                free.append(most - used + int(counts.get(droppable, 0)))
    return max(0, min(free))


def free_disk(folder: Path) -> int:
    """Bytes that can still be written where ``folder`` is or will be."""
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    return shutil.disk_usage(there).free
