"""An exported network as an ONNX graph, for runtimes other than PyTorch."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path

import torch
from transformers import PreTrainedModel

from provenance import UserError

OPSET = 18


class _Logits(torch.nn.Module):
    def __init__(self, network: PreTrainedModel) -> None:
        super().__init__()
        self.network = network

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, token_type_ids: torch.Tensor
    ) -> torch.Tensor:
        out = self.network(input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids)
        logits: torch.Tensor = out.logits
        return logits


@contextlib.contextmanager
def _no_chatter() -> Iterator[None]:
    """Keep torch's exporter from printing its steps, and from warning of packages that nobody needs here."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(action="ignore"), contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        logging.disable(before)


def write_onnx(network: PreTrainedModel, path: Path) -> None:
    """Write ``network`` to ``path``: int64 ``input_ids``, ``attention_mask`` and ``token_type_ids`` of
    (rows, tokens), both free, to fp32 ``logits``.

    Raises:
        UserError: the packages of the extra are not installed.
    """
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise UserError(f"--onnx needs {error.name}; run .venv/bin/pip install -e '.[onnx]'") from None
    ids = torch.randint(1, network.config.vocab_size, (2, 9))
    inputs = {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids).index_fill_(1, torch.tensor([8]), 0),
        "token_type_ids": torch.zeros_like(ids),
    }
    longest = network.config.max_position_embeddings
    free = {0: torch.export.Dim("rows"), 1: torch.export.Dim("tokens", max=longest)}
    with _no_chatter():
        program = torch.onnx.export(
            _Logits(network).eval(),
            (),
            kwargs=inputs,
            input_names=list(inputs),
            output_names=["logits"],
            dynamic_shapes=dict.fromkeys(inputs, free),
            opset_version=OPSET,
            dynamo=True,
            verbose=False,
        )
        assert program is not None
        program.save(path, external_data=False)
