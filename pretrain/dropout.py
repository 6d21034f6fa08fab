"""Dropout whose masks are cheap on a CPU.

PyTorch draws one Bernoulli number per element on the CPU, a large share of a small model's step. One 64-bit
draw serves eight elements here: its bytes are compared with the drop rate in 256ths.
"""

from __future__ import annotations

from typing import Any, TypeVar

import torch
from torch import nn
from torch.nn import functional
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import eager_mask

ATTENTION = "byte_dropout"
_INT64_MIN = torch.iinfo(torch.int64).min

M = TypeVar("M", bound=nn.Module)


def keep_mask(shape: torch.Size, threshold: int, dtype: torch.dtype) -> torch.Tensor:
    """CPU tensor of ``shape``: 0 with probability ``threshold/256``, else 1; from the global generator."""
    count = shape.numel()
    # From the smallest integer on: plain random_() never sets the sign bit and biases every eighth byte.
    words = torch.empty((count + 7) // 8, dtype=torch.int64).random_(_INT64_MIN, None)
    # In place on bytes, and bytes to floats: both vectorised, where bool tensors are not (10 times slower).
    return words.view(torch.uint8)[:count].ge_(threshold).view(shape).to(dtype)


class _Dropped(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, threshold: int) -> torch.Tensor:
        mask = keep_mask(x.shape, threshold, x.dtype)
        # The scale is applied as a float32 scalar: as a bf16 mask value it would be off by up to 0.4 %.
        ctx.scale = 256 / (256 - threshold)
        ctx.save_for_backward(mask)
        return (x * mask).mul_(ctx.scale)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        (mask,) = ctx.saved_tensors
        return (gradient * mask).mul_(ctx.scale), None


def byte_dropout(x: torch.Tensor, p: float, training: bool) -> torch.Tensor:
    """Dropout of ``x`` at ``round(256·p)/256``, over the exact kept share; PyTorch's own off the CPU."""
    threshold = round(p * 256)
    if not training or threshold == 0:
        return x
    if x.device.type != "cpu" or threshold == 256:
        return functional.dropout(x, p, training)
    return _Dropped.apply(x, threshold)


class ByteDropout(nn.Dropout):
    """``nn.Dropout`` over :func:`byte_dropout`."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return byte_dropout(x, self.p, self.training)


def plain_attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **_: Any,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Attention by matrix products on the CPU (several times faster there than bf16 SDPA), SDPA elsewhere.

    Args:
        query, key, value: (batch, heads, tokens, head size).
        attention_mask: additive, broadcastable to (batch, heads, tokens, tokens), or None.

    Returns:
        (batch, tokens, heads, head size), and the probabilities before dropout on the CPU, else None.
    """
    scaling = query.size(-1) ** -0.5 if scaling is None else scaling
    if query.device.type != "cpu":
        mask = None if attention_mask is None else attention_mask.to(query.dtype)
        out = functional.scaled_dot_product_attention(
            query, key, value, mask, dropout_p=dropout, scale=scaling
        )
        return out.transpose(1, 2).contiguous(), None
    scores = torch.matmul(query * scaling, key.transpose(2, 3))
    if attention_mask is not None:
        scores = scores + attention_mask.to(scores.dtype)
    probabilities = functional.softmax(scores, dim=-1)
    out = torch.matmul(byte_dropout(probabilities, dropout, module.training), value)
    return out.transpose(1, 2).contiguous(), probabilities


AttentionInterface.register(ATTENTION, plain_attention)
AttentionMaskInterface.register(ATTENTION, eager_mask)


def use_cheap_dropout(model: M) -> M:
    """Swap every ``nn.Dropout`` of ``model`` and the attention of its transformers parts; returns it.

    Works for Electra and Bert models. In evaluation mode the model computes what it did before (fp32: within
    rounding). Masks follow ``torch.manual_seed``.
    """
    for module in list(model.modules()):
        for name, child in module.named_children():
            if type(child) is nn.Dropout:
                setattr(module, name, ByteDropout(child.p).train(child.training))
        if isinstance(module, PreTrainedModel):
            module.set_attn_implementation(ATTENTION)
    return model
