"""The weights a run starts from when they are not random: networks that transformers can load."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from transformers import PreTrainedModel

from pretrain.config import PretrainConfig
from pretrain.model import Electra, token_shares
from pretrain.quiet import quiet
from provenance import UserError

# What decides the numbers and is not seen in the shapes of the weights, and what names shapes for a person.
COMPARED = (
    *("vocab_size", "embedding_size", "hidden_size", "num_hidden_layers", "num_attention_heads"),
    *("intermediate_size", "max_position_embeddings", "type_vocab_size", "hidden_act", "layer_norm_eps"),
    "tie_word_embeddings",
)


def parse_sources(words: Sequence[str], parts: Sequence[str], needed: Sequence[str] = ()) -> dict[str, str]:
    """``NETWORK=MODEL`` words as a mapping.

    Raises:
        UserError: a word of another form, a network that the objective does not have, or none for one that
            is ``needed``.
    """
    sources = {}
    for word in words:
        name, equals, model = word.partition("=")
        if not equals or not model or name not in parts:
            raise UserError(f"{word!r} is not NETWORK=MODEL with a network of {', '.join(parts)}")
        sources[name] = model
    for name in needed:
        if name not in sources:
            raise UserError(f"this objective needs a trained {name}; give --continue-from {name}=MODEL")
    return sources


def weights_sha256(network: torch.nn.Module) -> str:
    """Hex sha256 over names and bytes of all weights."""
    digest = hashlib.sha256()
    for name, value in sorted(network.state_dict().items()):
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def load_whole(kind: Any, model: str) -> PreTrainedModel:
    """The network of class ``kind`` in a folder or of a Hub id, fp32.

    Raises:
        UserError: it cannot be read, or a weight is missing, left over or of another shape (named).
    """
    loaded: PreTrainedModel
    report: dict[str, Any]
    try:
        with quiet():
            loaded, report = kind.from_pretrained(model, output_loading_info=True, dtype=torch.float32)
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        reason = str(error).strip().split("\n")[0]
        raise UserError(f"{model} cannot be loaded as {kind.__name__}: {reason}") from None
    for what in ("missing_keys", "unexpected_keys", "mismatched_keys", "error_msgs"):
        if found := report.get(what):
            names = ", ".join(sorted(map(str, found)))
            raise UserError(f"{model} is no {kind.__name__}: {what.replace('_', ' ')} {names}")
    return loaded


def _check_vocabulary(model: str, vocab: Path) -> None:
    from transformers.utils import cached_file

    with quiet():
        path = cached_file(model, "vocab.txt", _raise_exceptions_for_missing_entries=False)
    if path is not None and Path(path).read_bytes().split() != vocab.read_bytes().split():
        raise UserError(f"{model} has another vocab.txt than the corpus; build the corpus with that one")


def start_from(model: Electra, sources: Mapping[str, str], vocab: Path) -> dict[str, str]:
    """Copy the weights of ``sources`` (network name to folder or Hub id) into ``model``.

    Networks that are not named keep their random weights; what they share with one that is named is loaded.

    Args:
        vocab: the corpus's vocabulary file.

    Returns:
        sha256 of the loaded weights by network.

    Raises:
        UserError: a weight or setting does not fit (named), the vocabulary is another, or weights that are to
            be shared differ.
    """
    loaded: dict[str, Any] = {}
    for name, source in sources.items():
        ours = getattr(model, name)
        theirs = load_whole(type(ours), source)
        for field in COMPARED:
            here, there = getattr(ours.config, field), getattr(theirs.config, field)
            if here != there:
                raise UserError(f"{source} as {name}: {field} is {there}, and {here} here; change the size")
        _check_vocabulary(source, vocab)
        loaded[name] = theirs
    for name in reversed(model.parts):  # what others share comes before the network that users fine-tune
        if name in loaded:
            model.load_network(name, loaded[name].state_dict())
    model.tie()
    for name, network in loaded.items():
        kept = model.standalone(name).state_dict()
        for key, value in network.state_dict().items():
            # Equal but for the rounding of a table that is stored as another's and a residual.
            if not torch.allclose(kept[key], value, rtol=0, atol=1e-6):
                raise UserError(
                    f"{key} differs between {' and '.join(sources.values())}, so they cannot share it; "
                    "give networks that were trained together, or --sharing none"
                )
    return {name: weights_sha256(network) for name, network in loaded.items()}


def start_from_counts(
    model: Electra, counts: np.ndarray, config: PretrainConfig, *, new: bool, given: Collection[str]
) -> None:
    """What ``config`` takes from the token ``counts`` (vocabulary,) of the corpus.

    Args:
        new: the run begins; else its weights are those of a checkpoint and stay.
        given: networks whose weights were loaded and stay.
    """
    if config.replacements == "unigrams":
        model.shares.copy_(torch.from_numpy(token_shares(counts)))
    if new and config.initial_unigrams:
        model.start_at_frequencies(counts, but=given)
