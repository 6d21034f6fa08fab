"""Held-out metrics of both networks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch

from pretrain.config import PretrainConfig
from pretrain.data import Batch
from pretrain.device import autocast
from pretrain.model import Electra
from pretrain.objectives import OBJECTIVES


def entropy(rate: float) -> float:
    """Entropy in nats of a coin that falls ``rate`` of the time: what knowing only the fake rate costs."""
    return 0.0 if rate <= 0 or rate >= 1 else -rate * math.log(rate) - (1 - rate) * math.log(1 - rate)


@torch.no_grad()
def evaluate(
    model: Electra, batches: Sequence[Batch], config: PretrainConfig, device: torch.device
) -> dict[str, float]:
    """Metrics over ``batches``, the same masks and draws at every call; leaves the random state as it was.

    Returns:
        ``heldout_`` entries. Percent: ``generator_accuracy`` (most likely id) and
        ``generator_accuracy_sampled``; ``precision``, ``recall`` and ``auc`` of the discriminator. Nats:
        ``loss`` and its parts, ``fake_entropy``. Share: ``fake_rate``. "All original" would be right for
        1 - fake rate of the tokens, so accuracy is not among them.
    """
    from sklearn.metrics import roc_auc_score

    was_training = model.training
    model.eval()
    generator = discriminator = 0.0
    masked = tokens = guessed = drawn = 0
    scores, labels = [], []
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(0)
        for cpu_batch in batches:
            batch = cpu_batch.to(device)
            with autocast(device, config.dtype):
                out = OBJECTIVES[config.objective](model, batch)
            original = batch.input_ids.flatten()[batch.positions]
            generator += float(out.generator_sum)
            discriminator += float(out.discriminator_sum)
            masked += len(batch.positions)
            tokens += batch.tokens
            drawn += int((out.sampled == original).sum())
            guessed += int((out.guessed == original).sum())
            present = slice(None) if batch.attention_mask is None else batch.attention_mask.bool()
            scores.append(out.logits[present].flatten().float().cpu().numpy())
            labels.append(out.replaced[present].flatten().cpu().numpy())
    model.train(was_training)

    score, label = np.concatenate(scores), np.concatenate(labels)
    found = score > 0
    hits = int((found & label).sum())
    rate = float(label.mean())
    generator_loss, discriminator_loss = generator / max(1, masked), discriminator / tokens
    return {
        "heldout_loss": generator_loss + config.discriminator_weight * discriminator_loss,
        "heldout_generator_loss": generator_loss,
        "heldout_discriminator_loss": discriminator_loss,
        "heldout_fake_rate": rate,
        "heldout_fake_entropy": entropy(rate),
        "heldout_generator_accuracy": 100 * guessed / max(1, masked),
        "heldout_generator_accuracy_sampled": 100 * drawn / max(1, masked),
        "heldout_precision": 100 * hits / max(1, int(found.sum())),
        "heldout_recall": 100 * hits / max(1, int(label.sum())),
        "heldout_auc": 100 * float(roc_auc_score(label, score)) if 0 < rate < 1 else 50.0,
    }
