"""A fixture of the fine-tuning tests: the tokenizer of the tiny model."""

from pathlib import Path

import pytest

from finetune.tokens import Encoder, load_encoder


@pytest.fixture(scope="session")
def encoder(tiny_model: Path) -> Encoder:
    """What turns texts into token ids, as the folder of the model says."""
    return load_encoder(tiny_model)
