"""Adam and learning rate as the ELECTRA recipe has them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import torch

# Beyond this step beta**step is 0 in double precision, so the fused kernel's bias corrections are exactly 1.
_NO_CORRECTION = 1e9
_NO_DECAY = re.compile(r"LayerNorm|layer_norm|bias")


def parameter_groups(
    named_parameters: Iterable[tuple[str, torch.nn.Parameter]], weight_decay: float
) -> list[dict[str, Any]]:
    """Two groups: decayed weights (embeddings among them), and LayerNorms and biases without decay.

    A parameter under several names (tied weights) enters once; frozen ones are left out.
    """
    decayed: dict[int, torch.nn.Parameter] = {}
    others: dict[int, torch.nn.Parameter] = {}
    for name, parameter in named_parameters:
        if parameter.requires_grad and id(parameter) not in decayed and id(parameter) not in others:
            (others if _NO_DECAY.search(name) else decayed)[id(parameter)] = parameter
    return [
        {"params": list(decayed.values()), "weight_decay": weight_decay},
        {"params": list(others.values()), "weight_decay": 0.0},
    ]


def learning_rate(step: int, *, peak: float, total: int, warmup: int) -> float:
    """Rate at ``step``: ``peak · (1 - step/total) · min(1, step/warmup)``.

    The warm-up multiplies the linear decay from step 0 on (google-research/electra ``optimization.py``).
    """
    rising = min(1.0, step / warmup) if warmup else 1.0
    return peak * max(0.0, 1.0 - step / total) * rising


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


@torch.no_grad()
def clipping(parameters: Iterable[torch.nn.Parameter], max_norm: float) -> tuple[torch.Tensor, torch.Tensor]:
    """``(divide_by, skip)`` for :meth:`Adam.step`: clip the global norm to ``max_norm``, skip if infinite."""
    norms = torch._foreach_norm([p.grad for p in parameters if p.grad is not None])
    norm = torch.linalg.vector_norm(torch.stack(list(norms)))
    return (norm / max_norm).clamp(min=1.0), (~torch.isfinite(norm)).float()
