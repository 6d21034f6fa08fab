"""The generator's vocabulary projection, its loss and its draws in one pass.

With 21,128 entries the logits are the largest tensors of a small model's step. Here they exist for a few
rows at a time, while they are in the processor's cache; what stays is the gradient in the products' dtype.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.nn import functional

_TINY = torch.finfo(torch.float32).tiny
ROWS = {"cpu": 32}  # rows at a time; elsewhere many more
OTHER_ROWS = 4096


def draw(probabilities: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    """One index per row, with the row's probabilities.

    The same distribution as the Gumbel maximum at temperature 1, by inverting the cumulative sum: one uniform
    number a row in place of one per entry. The sum is taken over blocks first and then inside one block.

    Args:
        probabilities: (rows, entries) fp32, not negative, of any sum above 0.
        uniform: (rows,) fp32 in [0, 1).

    Returns:
        (rows,) int64; never an entry of probability 0.
    """
    rows, entries = probabilities.shape
    width = next(d for d in range(math.isqrt(entries), 0, -1) if entries % d == 0)
    blocks = probabilities.view(rows, entries // width, width)
    sums = blocks.sum(dim=-1).cumsum(dim=-1)
    # A rounding step below 1, else the product could reach the total and fall off the end.
    target = uniform.clamp(max=1 - 2**-23).unsqueeze(1) * sums[:, -1:]
    block = torch.searchsorted(sums, target, right=True)
    rest = target - functional.pad(sums, (1, 0)).gather(1, block)
    inside = blocks[torch.arange(rows, device=block.device), block.squeeze(1)].cumsum(dim=-1)
    # The two sums round differently: a remainder at or past the block's end means its last possible entry.
    last = torch.searchsorted(inside, inside[:, -1:].contiguous(), right=False)
    index = torch.minimum(torch.searchsorted(inside, rest, right=True), last)
    return (block * width + index).squeeze(1)


class _Vocabulary(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor,
        labels: torch.Tensor,
        uniform: torch.Tensor,
        dtype: torch.dtype,
        temperature: float,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        hidden, weight, cast_bias = hidden.to(dtype), weight.to(dtype), bias.to(dtype)
        rows = ROWS.get(hidden.device.type, OTHER_ROWS)
        gradient = torch.empty(len(hidden), len(weight), dtype=dtype, device=hidden.device)
        nll = torch.empty(len(hidden), dtype=torch.float32, device=hidden.device)
        sampled, guessed = torch.empty_like(labels), torch.empty_like(labels)
        for at in range(0, len(hidden), rows):
            part = slice(at, at + rows)
            logits = functional.linear(hidden[part], weight, cast_bias).float()
            probabilities = functional.softmax(logits, dim=-1)
            here = labels[part].unsqueeze(1)
            nll[part] = -probabilities.gather(1, here).squeeze(1).clamp(min=_TINY).log()
            drawn_from = probabilities if temperature == 1 else functional.softmax(logits / temperature, -1)
            sampled[part] = draw(drawn_from, uniform[part])
            if not ctx.needs_input_grad[0]:
                guessed[part] = logits.argmax(dim=-1)
                continue
            # d nll / d logits = probabilities - one-hot label
            probabilities.scatter_add_(1, here, probabilities.new_full((1, 1), -1.0).expand(len(here), 1))
            gradient[part] = probabilities
        ctx.save_for_backward(hidden, weight, gradient)
        ctx.mark_non_differentiable(sampled, guessed)
        return nll, sampled, guessed

    @staticmethod
    def backward(ctx: Any, scale: torch.Tensor, *_: Any) -> tuple[Any, ...]:
        hidden, weight, gradient = ctx.saved_tensors
        # The scale of each row goes on the small side of each product.
        to_hidden = (gradient @ weight).float() * scale.unsqueeze(1)
        to_weight = gradient.t() @ (hidden * scale.to(hidden.dtype).unsqueeze(1))
        # In fp32 a few rows at a time: a tenth of the time that a sum over the bf16 columns takes.
        to_bias = torch.zeros(len(weight), dtype=torch.float32, device=scale.device)
        rows = ROWS.get(scale.device.type, OTHER_ROWS)
        for at in range(0, len(gradient), rows):
            to_bias.addmv_(gradient[at : at + rows].float().t(), scale[at : at + rows])
        return to_hidden, to_weight.float(), to_bias, None, None, None, None


def vocabulary_loss(
    hidden: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
    labels: torch.Tensor,
    temperature: float = 1.0,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Loss and draws of ``hidden @ weight.T + bias`` without keeping the logits.

    Products run in the arithmetic of the surrounding autocast; softmax, loss and draws in fp32.

    Args:
        hidden: (chosen, embedding).
        weight, bias: (vocabulary, embedding) and (vocabulary,).
        labels: (chosen,) original ids.
        temperature: the logits are divided by it for the draws, not for the loss.

    Returns:
        (chosen,) each: negative log likelihoods in nats (differentiable; at most 87), an id drawn per row
        (follows ``torch.manual_seed``), the most likely id per row (without gradients only).
    """
    kind = hidden.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else torch.float32
    uniform = torch.rand(len(hidden), device=hidden.device)
    return _Vocabulary.apply(hidden, weight, bias, labels, uniform, dtype, temperature)
