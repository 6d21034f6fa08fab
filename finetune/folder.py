"""Where a model lies: a folder as transformers writes it, or a Hub id and its local copy."""

from __future__ import annotations

import re
from pathlib import Path

import transformers

from pretrain.quiet import quiet
from provenance import UserError

WEIGHTS = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
TOKENIZER_FILES = (
    "tokenizer.json",
    "vocab.txt",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "*.model",
)
HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")


def _download(model: str) -> Path:
    """The Hub's files for ``model`` in the local cache; the cache alone where the Hub cannot be reached."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    def fetch(weights: str, offline: bool) -> Path:
        patterns = ["config.json", *TOKENIZER_FILES, weights, f"{weights}.index.json"]
        return Path(
            snapshot_download(model, allow_patterns=patterns, local_files_only=offline, etag_timeout=5)
        )

    for offline in (False, True):
        try:
            folder = fetch("model*.safetensors", offline)
            if not any((folder / name).exists() for name in WEIGHTS):
                folder = fetch("pytorch_model*.bin", offline)
            return folder
        except (HfHubHTTPError, LocalEntryNotFoundError, OSError, ValueError):
            continue
    raise UserError(
        f"{model} is neither a folder nor a model that the Hub gives; check the name and the network, "
        "choose a mirror with HF_ENDPOINT, or give the folder of a model"
    )


def locate(model: str | Path) -> Path:
    """The folder of ``model``: itself, or the local copy of a Hub id (downloaded when it is not there).

    Raises:
        UserError: no such folder or Hub model, or a folder without config.json or weights.
    """
    folder = Path(model)
    if not folder.is_dir():
        if folder.exists() or not HUB_ID.fullmatch(str(model)):
            raise UserError(
                f"{model} is not a folder; give the folder of a model, or a Hub id such as org/name"
            )
        folder = _download(str(model))
    if not (folder / "config.json").is_file():
        raise UserError(f"{model} has no config.json; give the folder of a transformers model")
    if not any((folder / name).is_file() for name in WEIGHTS):
        raise UserError(f"{model} has no weights; put {WEIGHTS[0]} or {WEIGHTS[2]} into it")
    return folder


def read_config(folder: Path) -> transformers.PretrainedConfig:
    """``config.json`` of a model's folder.

    Raises:
        UserError: it is damaged, of an architecture that transformers does not know, or of no encoder.
    """
    with quiet():
        try:
            config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False)
        except (OSError, ValueError, KeyError) as error:
            reason = str(error).strip().split("\n")[0]
            raise UserError(f"{folder / 'config.json'} cannot be used ({reason}); mend it") from None
    if not is_encoder(config):
        raise UserError(
            f"the model in {folder} ({config.model_type}) generates text and is no encoder; "
            "give one of BERT's or ELECTRA's kind"
        )
    return config


def is_encoder(config: transformers.PretrainedConfig) -> bool:
    """Whether a model reads a text as a whole and has no decoder.

    The heads of decoders read the last token, which is padding where rows of other lengths stand beside it.
    """
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    )

    writes_only = (
        config.model_type in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
        and config.model_type not in MODEL_FOR_MASKED_LM_MAPPING_NAMES
    )
    return not writes_only and not getattr(config, "is_encoder_decoder", False)
