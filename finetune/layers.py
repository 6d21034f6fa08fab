"""Learning rates by layer: the lower a layer, the less it changes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import torch

from pretrain.optim import parameter_groups


def layer_depth(name: str, layers: int, prefix: str) -> int:
    """Depth of a parameter: embeddings and their projection 0, layer i i + 1, head ``layers`` + 2.

    As google-research/electra ``optimization.py`` has it; the depth between top layer and head belongs to
    the pooler, which ELECTRA lost: hence the top layer's factor is the decay squared.
    """
    if not name.startswith(f"{prefix}."):
        return layers + 2
    if found := re.search(r"\.layers?\.(\d+)\.", name):
        return int(found[1]) + 1
    if "embeddings" in name:
        return 0
    return layers + 1 if ".pooler." in name else layers


def layer_groups(
    named_parameters: Sequence[tuple[str, torch.nn.Parameter]],
    *,
    layers: int,
    prefix: str,
    decay: float,
    weight_decay: float,
) -> list[dict[str, Any]]:
    """Optimiser groups with ``scale``, the factor decay^(layers + 2 - depth) on the learning rate.

    No vector decays: it is a bias or belongs to a norm, which not every family calls LayerNorm.
    """
    alike: dict[tuple[int, float], list[tuple[str, torch.nn.Parameter]]] = {}
    for name, parameter in named_parameters:
        key = layer_depth(name, layers, prefix), weight_decay if parameter.dim() > 1 else 0.0
        alike.setdefault(key, []).append((name, parameter))
    return [
        {**group, "scale": decay ** (layers + 2 - depth)}
        for (depth, rate), members in sorted(alike.items(), key=lambda item: item[0])
        for group in parameter_groups(members, rate)
        if group["params"]
    ]
