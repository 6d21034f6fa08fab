"""Held-out metrics of the networks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import torch
from torch.nn import functional

from pretrain.config import PretrainConfig
from pretrain.data import Batch
from pretrain.device import autocast
from pretrain.objectives import Objective
from pretrain.system import Loss, add_losses, mean_losses


def entropy(rate: float) -> float:
    """Entropy in nats of a coin that falls ``rate`` of the time: what knowing only the fake rate costs."""
    return 0.0 if rate <= 0 or rate >= 1 else -rate * math.log(rate) - (1 - rate) * math.log(1 - rate)


def mean_cosine(vectors: torch.Tensor) -> float:
    """Mean cosine over all pairs of different rows of ``vectors`` (n, width): 1 where all point one way."""
    count = len(vectors)
    total = functional.normalize(vectors.float(), dim=-1).sum(dim=0).square().sum().item()
    return (total - count) / max(1, count * (count - 1))


def detection_metrics(score: np.ndarray, label: np.ndarray) -> dict[str, float]:
    """Of logits ``score`` for bool ``label``: fake rate, its entropy; precision, recall, AUC in percent."""
    from sklearn.metrics import roc_auc_score

    found, rate = score > 0, float(label.mean())
    hits = int((found & label).sum())
    return {
        "fake_rate": rate,
        "fake_entropy": entropy(rate),
        "precision": 100 * hits / max(1, int(found.sum())),
        "recall": 100 * hits / max(1, int(label.sum())),
        "auc": 100 * float(roc_auc_score(label, score)) if 0 < rate < 1 else 50.0,
    }


@torch.no_grad()
def evaluate(
    objective: Objective, batches: Sequence[Batch], config: PretrainConfig, device: torch.device, step: int
) -> dict[str, float]:
    """Metrics over ``batches``, the same masks and draws at every call; leaves the random state as it was.

    Args:
        step: the last one trained: what depends on it is as it was then.

    Returns:
        ``heldout_`` entries. Nats: ``loss`` and ``<name>_loss`` of its terms. Percent:
        ``<network>_accuracy`` of the most likely id, ``generator_accuracy_sampled`` where ids are drawn.
        Where replaced tokens are looked for, those of :func:`detection_metrics`; "all original" would be
        right for 1 - fake rate of the tokens, so accuracy is not among them. ``token_cosine`` is
        :func:`mean_cosine` of the last layer of the network that users fine-tune, over the tokens of the
        first batch, nothing masked: near 1 it has collapsed.
    """
    model = objective.model
    was_training = model.training
    model.eval()
    losses: dict[str, Loss] = {}
    counts: Counter[str] = Counter()
    right: Counter[str] = Counter()
    scores, labels = [], []
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(0)
        for cpu_batch in batches:
            batch = cpu_batch.to(device)
            with autocast(device, config.dtype):
                out = objective(batch, step)
            original = batch.input_ids.flatten()[batch.positions]
            counts.update(chosen=len(batch.positions), tokens=batch.tokens)
            add_losses(losses, out.losses)
            for name, ids in out.guessed.items():
                right[f"{name}_accuracy"] += int((ids == original).sum())
            if out.sampled is not None:
                right["generator_accuracy_sampled"] += int((out.sampled == original).sum())
            if out.logits is not None and out.replaced is not None:
                mask = batch.attention_mask if out.logits.dim() == 2 else None
                asked = slice(None) if mask is None else mask.bool()
                scores.append(out.logits[asked].flatten().float().cpu().numpy())
                labels.append(out.replaced[asked].flatten().cpu().numpy())
        first = batches[0].to(device)
        with autocast(device, config.dtype):
            hidden = model.hidden_states(next(iter(model.parts)), first.input_ids, first)
    model.train(was_training)

    found = mean_losses(losses, counts["chosen"], counts["tokens"])
    found |= {name: 100 * count / max(1, counts["chosen"]) for name, count in right.items()}
    if scores:
        found |= detection_metrics(np.concatenate(scores), np.concatenate(labels))
    tokens = slice(None) if first.attention_mask is None else first.attention_mask.bool()
    found["token_cosine"] = mean_cosine(hidden[tokens].flatten(0, -2))
    return {f"heldout_{name}": value for name, value in found.items()}
