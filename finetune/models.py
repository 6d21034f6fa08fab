"""Any encoder, from a folder or the Hub: its weights in float32, and facts about it.

Weights come from safetensors where there are any, else from a ``.bin`` file read without unpickling
objects; code that lies beside weights is never run. Every encoder weight must be found and must fit. The
head is always new, except where ``keep_head`` asks for a stored one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import torch
import transformers

from finetune.folder import TOKENIZER_FILES, WEIGHTS, locate, quiet, read_config
from finetune.tokens import load_encoder
from pretrain.config import config_from
from pretrain.flops import run_flops
from provenance import MANIFEST, UserError, sha256_file, verify_manifest

Kind = Literal["text", "span"]

# --- weights --------------------------------------------------------------------------------------


def _of_encoder(key: str, model: transformers.PreTrainedModel) -> bool:
    """True if ``key`` of a weights file, prefixed or not, names a part of the encoder."""
    prefix = model.base_model_prefix
    children = {name for name, _ in model.base_model.named_children()} - {"pooler"}
    parts = key.removeprefix(f"{prefix}.").split(".")
    return parts[0] in children and parts[-1] != "position_ids"


def init_head(model: transformers.PreTrainedModel, names: set[str]) -> None:
    """Draw the weights named from N(0, ``initializer_range``), in the order of their names; biases are 0.

    One-dimensional weights belong to layer norms and become 1. Draws from torch's global generator.
    """
    deviation = getattr(model.config, "initializer_range", 0.02)
    with torch.no_grad():
        for name, parameter in sorted(model.named_parameters()):
            if name in names:
                if name.endswith("bias"):
                    parameter.zero_()
                elif parameter.dim() == 1:
                    parameter.fill_(1.0)
                else:
                    parameter.normal_(0.0, deviation)


def load_model(
    model: str | Path, kind: Kind, num_labels: int | None = None, *, keep_head: bool = False
) -> transformers.PreTrainedModel:
    """The encoder with transformers' head for ``kind``, in float32, in evaluation mode.

    The head is drawn from torch's global generator (seed it first), also where the folder holds one that
    fits, so that a score never depends on what the folder was used for before. A pooler is kept where it is
    stored and drawn where it is not. ``keep_head`` loads both and draws nothing.

    Raises:
        UserError: the encoder's weights, or with ``keep_head`` the head's, are missing or of another shape
            (names them), or cannot be read.
    """
    folder = locate(model)
    config = read_config(folder)
    heads = {
        "text": transformers.AutoModelForSequenceClassification,
        "span": transformers.AutoModelForQuestionAnswering,
    }
    if num_labels is not None:  # else the stored one: who loads a saved model need not know it
        config.num_labels = num_labels
    try:
        with quiet():
            network, report = heads[kind].from_pretrained(
                folder,
                config=config,
                dtype=torch.float32,  # bf16 weights do not move under small updates
                weights_only=True,
                trust_remote_code=False,
                ignore_mismatched_sizes=True,  # for heads; the encoder is checked below
                output_loading_info=True,
            )
    except UserError:
        raise
    except Exception as error:  # damaged files and unsupported architectures fail in many ways
        reason = str(error).strip().split("\n")[0]
        raise UserError(f"the model in {folder} cannot be loaded ({reason}); check its files") from None
    mismatched = {key if isinstance(key, str) else key[0] for key in report["mismatched_keys"]}
    for what, keys in (
        ("missing from the file", report["missing_keys"]),
        ("unknown to the model", report["unexpected_keys"]),
        ("of another shape than config.json says", mismatched),
    ):
        wrong = sorted(key for key in keys if _of_encoder(key, network))
        if wrong:
            more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
            raise UserError(
                f"the weights in {folder} do not match its config.json: {', '.join(wrong[:3])}{more} "
                f"{what}; give the files of one model"
            )
    prefix = network.base_model_prefix
    new = set(report["missing_keys"]) | mismatched
    names = {name for name, _ in network.named_parameters()}
    if keep_head and (lacking := sorted(new & names)):  # a pooler too: one drawn now would give any answer
        raise UserError(
            f"the model in {folder} has no {lacking[0]}: it is not fine-tuned for this kind of task; "
            "give one that benchmarks.run --save-model kept"
        )
    if not keep_head:
        init_head(network, new | {name for name in names if not name.startswith(f"{prefix}.")})
    return network.float().eval()


def longest_input(model: transformers.PreTrainedModel) -> int | None:
    """Tokens that a model has positions for; None where there is no limit.

    RoBERTa's kin count positions from behind the padding index, so that 514 of them take 512 tokens.
    """
    positions = getattr(model.config, "max_position_embeddings", None)
    table = getattr(getattr(model.base_model, "embeddings", None), "position_embeddings", None)
    unused = getattr(table, "padding_idx", None)
    return positions if positions is None or unused is None else positions - unused - 1


# --- facts ----------------------------------------------------------------------------------------


def weights_sha256(folder: Path) -> str:
    """Hex sha256 of the one weights file, or of the joined hashes of its parts in order of their names."""
    for name in WEIGHTS:
        path = folder / name
        if path.is_file():
            if not name.endswith(".json"):
                return sha256_file(path)
            parts = sorted(set(json.loads(path.read_text(encoding="utf-8"))["weight_map"].values()))
            return hashlib.sha256("".join(sha256_file(folder / part) for part in parts).encode()).hexdigest()
    raise UserError(f"{folder} has no weights; put {WEIGHTS[0]} or {WEIGHTS[2]} into it")


# Entries of config.json that change no number.
_BOOKKEEPING = {
    *("_name_or_path", "architectures", "transformers_version", "dtype", "torch_dtype"),
    *("id2label", "label2id", "num_labels", "problem_type"),
}


def config_sha256(folder: Path) -> str:
    """Hex sha256 over what of ``config.json`` can change a number: shapes, dropout, activations and so on."""
    content = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    kept = {name: value for name, value in content.items() if name not in _BOOKKEEPING}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


def _shape(config: transformers.PretrainedConfig) -> dict[str, int | None]:
    """Parameters of the encoder with its embeddings, without pooler and heads; and its longest input."""
    with torch.device("meta"), quiet():
        encoder = transformers.AutoModel.from_config(config)
    weights = [p.numel() for name, p in encoder.named_parameters() if not name.startswith("pooler.")]
    return {"parameters": sum(weights), "longest_input": longest_input(encoder)}


def model_facts(model: str | Path) -> dict[str, Any]:
    """What a record says of a model, without loading its weights.

    Returns:
        ``name`` (that of its manifest, else the Hub id with ``--`` for ``/``, else the folder's name),
        ``hub`` (its Hub id, or None), ``weights_sha256``, ``tokenizer_sha256`` (over the tokenizer's files),
        ``config_sha256`` (:func:`config_sha256`),
        ``parameters`` of the encoder, ``longest_input`` (tokens, or None), ``revision`` (a Hub commit, or the
        config id of the folder's manifest, or None), ``family`` (``model_type``), ``hidden_size``,
        ``layers``, ``vocabulary`` and ``pretraining_flops`` (of a model that pretrain.export wrote, 0 with
        random weights; else None).

    Raises:
        UserError: as :func:`locate` and :func:`load_encoder`, or a file differs from the folder's manifest.
    """
    folder = locate(model)
    config = read_config(folder)
    load_encoder(model)
    from_hub = not Path(model).is_dir()
    manifest = {} if from_hub or not (folder / MANIFEST).is_file() else verify_manifest(folder)
    name = str(model).replace("/", "--") if from_hub else manifest.get("name") or folder.resolve().name
    digest = hashlib.sha256()
    for path in sorted({path for pattern in TOKENIZER_FILES for path in folder.glob(pattern)}):
        digest.update(f"{path.name} {sha256_file(path)}\n".encode())
    return {
        "name": name,
        "hub": str(model) if from_hub else None,
        "weights_sha256": weights_sha256(folder),
        "tokenizer_sha256": digest.hexdigest(),
        "config_sha256": config_sha256(folder),
        **_shape(config),
        "revision": folder.name if from_hub else manifest.get("config_id"),
        "family": config.model_type,
        "hidden_size": config.hidden_size,
        "layers": config.num_hidden_layers,
        "vocabulary": config.vocab_size,
        "pretraining_flops": _pretraining_flops(manifest),
    }


def _pretraining_flops(manifest: Mapping[str, Any]) -> int | None:
    """Matrix-product operations of the pretraining an export's manifest tells of (:mod:`pretrain.flops`)."""
    if manifest.get("stage") != "pretrain.export":
        return None
    try:
        return run_flops(config_from(manifest["config"]), manifest.get("step") or 0)
    except UserError:  # an export of another version: its model can be used all the same
        return None
