"""Adam and learning rate as the ELECTRA recipe has them."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable
from typing import Any

import torch

# Beyond this step beta**step is 0 in double precision, so the fused kernel's bias corrections are exactly 1.
_NO_CORRECTION = 1e9
_NO_DECAY = re.compile(r"LayerNorm|layer_norm|bias")
_WORDS = "word_embeddings"


def parameter_groups(
    named_parameters: Iterable[tuple[str, torch.nn.Parameter]], weight_decay: float, word_rate: float = 1.0
) -> list[dict[str, Any]]:
    """Decayed weights (embeddings among them), LayerNorms and biases without decay, and word tables.

    ``scale`` of a group is the factor on its learning rate: ``word_rate`` for word tables, which make no
    group of their own where it is 1. A parameter under several names (tied weights) enters once; frozen ones
    are left out.
    """
    words = weight_decay, word_rate
    groups: dict[tuple[float, float], list[torch.nn.Parameter]] = {(weight_decay, 1.0): [], (0.0, 1.0): []}
    seen: set[int] = set()
    for name, parameter in named_parameters:
        if parameter.requires_grad and id(parameter) not in seen:
            seen.add(id(parameter))
            key = words if _WORDS in name else (0.0 if _NO_DECAY.search(name) else weight_decay, 1.0)
            groups.setdefault(key, []).append(parameter)
    return [
        {"params": parameters, "weight_decay": decay, "scale": scale}
        for (decay, scale), parameters in groups.items()
    ]


def linear(step: int, total: int, decay: float) -> float:
    """Share of the peak rate that falls from step 0 to the last (google-research/electra)."""
    return max(0.0, 1.0 - step / total)


def stable_steps(total: int, decay: float) -> int:
    """Steps of a ``wsd`` run of ``total`` steps before the rate decays."""
    return total - round(decay * total)


def branch_steps(stable: int, decay: float) -> int:
    """Steps of the shortest ``wsd`` run whose rate does not decay before step ``stable``."""
    return next(total for total in itertools.count(stable) if stable_steps(total, decay) >= stable)


def wsd(step: int, total: int, decay: float) -> float:
    """Share of the peak rate that stays, and falls as ``1 - √`` in the last ``decay`` of the run.

    Warm-up, stable, decay: Hägele et al. 2024 (arXiv:2405.18392). Before the decay nothing depends on
    ``total``, so runs of several lengths share their beginning.
    """
    stable = stable_steps(total, decay)
    return 1.0 if step < stable else 1.0 - math.sqrt(min(1.0, (step - stable) / max(1, total - stable)))


SCHEDULES: dict[str, Callable[[int, int, float], float]] = {"linear": linear, "wsd": wsd}


def learning_rate(
    step: int, *, peak: float, total: int, warmup: int, schedule: str = "linear", decay: float = 0.1
) -> float:
    """Rate at ``step``: ``peak · schedule(step) · min(1, step/warmup)``.

    The warm-up multiplies the decay from step 0 on (google-research/electra ``optimization.py``).

    Args:
        schedule: an entry of :data:`SCHEDULES`.
        decay: share of the run in which ``wsd`` decays.
    """
    rising = min(1.0, step / warmup) if warmup else 1.0
    return peak * SCHEDULES[schedule](step, total, decay) * rising


class Adam(torch.optim.Optimizer):
    """Adam with decoupled weight decay and, by default, without bias correction.

    ``p -= lr · (m / (√v + ε) + decay · p)``: ε stands outside the root, the decay is multiplied by the rate
    (google-research/electra ``optimization.py``). Runs PyTorch's fused kernel: one pass over memory.

    A group may carry its own ``lr`` (layer-wise rates) and ``weight_decay``.
    """

    def __init__(
        self,
        groups: Any,
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.01,
        bias_correction: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "bias_correction": bias_correction,
        }
        super().__init__(groups, defaults)

    @torch.no_grad()
    def step(
        self,
        closure: Any = None,
        *,
        divide_by: torch.Tensor | None = None,
        skip: torch.Tensor | None = None,
    ) -> Any:
        """One update.

        Args:
            divide_by: scalar fp32 tensor every gradient is divided by (clipping without a pass of its own).
            skip: scalar fp32 tensor; 1 leaves weights and moments as they are. Read by the kernel, no sync.
        """
        loss = None if closure is None else closure()
        for group in self.param_groups:
            parameters = [p for p in group["params"] if p.grad is not None]
            if not parameters:
                continue
            for p in parameters:
                if not self.state[p]:
                    start = 0.0 if group["bias_correction"] else _NO_CORRECTION
                    self.state[p]["exp_avg"] = torch.zeros_like(p)
                    self.state[p]["exp_avg_sq"] = torch.zeros_like(p)
                    self.state[p]["step"] = torch.tensor(start, dtype=torch.float32, device=p.device)
            states = [self.state[p] for p in parameters]
            if group["bias_correction"]:
                torch._foreach_add_([s["step"] for s in states], 1.0 if skip is None else 1.0 - skip)
            torch._fused_adamw_(
                parameters,
                [p.grad for p in parameters],
                [s["exp_avg"] for s in states],
                [s["exp_avg_sq"] for s in states],
                [],
                [s["step"] for s in states],
                lr=group["lr"],
                beta1=group["betas"][0],
                beta2=group["betas"][1],
                weight_decay=group["weight_decay"],
                eps=group["eps"],
                amsgrad=False,
                maximize=False,
                grad_scale=divide_by,
                found_inf=skip,
            )
        return loss


class LossScale:
    """Factor on the loss that keeps small fp16 gradients from vanishing: halved where one overflowed,
    doubled after 2,000 steps without. ``active`` False: 1 for good. Tensors on ``device``, no sync.
    """

    def __init__(self, active: bool, device: torch.device) -> None:
        self.active = active
        self.factor = torch.full((), 65536.0 if active else 1.0, device=device)
        self.good = torch.zeros((), dtype=torch.int32, device=device)

    def update(self, overflowed: torch.Tensor) -> None:
        """After a step; ``overflowed`` is 1 where its gradient was not finite."""
        if self.active:
            torch._amp_update_scale_(self.factor, self.good, overflowed, 2.0, 0.5, 2000)

    def state_dict(self) -> dict[str, torch.Tensor]:
        """For a checkpoint."""
        return {"factor": self.factor, "good": self.good}

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        """From a checkpoint."""
        self.factor.copy_(state["factor"])
        self.good.copy_(state["good"])


@torch.no_grad()
def clipping(
    parameters: Iterable[torch.nn.Parameter], max_norm: float, scale: torch.Tensor | float = 1.0
) -> tuple[torch.Tensor, torch.Tensor]:
    """``(divide_by, skip)`` for :meth:`Adam.step`: clip the global norm to ``max_norm``, skip if infinite.

    ``scale`` is the factor on the loss, which ``divide_by`` takes out again.
    """
    norms = torch._foreach_norm([p.grad for p in parameters if p.grad is not None])
    norm = torch.linalg.vector_norm(torch.stack(list(norms)))
    return (norm / max_norm).clamp(min=scale), (~torch.isfinite(norm)).float()
