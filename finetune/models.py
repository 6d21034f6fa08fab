"""Any encoder, from a folder or the Hub: its weights in float32, its own tokenizer, and facts about it.

Weights come from safetensors where there are any, else from a ``.bin`` file read without unpickling
objects; code that lies beside weights is never run. Every encoder weight must be found and must fit. The
head is always new, except where ``keep_head`` asks for a stored one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import transformers

from provenance import MANIFEST, UserError, sha256_file

Kind = Literal["text", "span"]

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
PADDED_VOCABULARY = 128  # some models round their embedding table up to a multiple of this
HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep transformers' load reports and bars off the console: what matters becomes a UserError."""
    logging = transformers.utils.logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


# --- where it lies --------------------------------------------------------------------------------


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


def _config(folder: Path) -> transformers.PretrainedConfig:
    with _quiet():
        try:
            return transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False)
        except (OSError, ValueError, KeyError) as error:
            reason = str(error).strip().split("\n")[0]
            raise UserError(f"{folder / 'config.json'} cannot be used ({reason}); mend it") from None


# --- tokenizer ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Encoder:
    """A model's tokenizer with the special tokens it puts around one text (A) and around two (A, B).

    ``single`` holds the ids before and after A; ``pair`` those before A, between A and B, and after B.
    ``types`` are the token types of those three places and of A and B: before, A, between, B, after.
    """

    tokenizer: Any
    single: tuple[tuple[int, ...], tuple[int, ...]]
    pair: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
    types: tuple[int, int, int, int, int]
    pad: int

    def encode(self, texts: list[str]) -> list[Any]:
        """Encodings without special tokens; their ``offsets`` are character positions in the text."""
        backend = self.tokenizer.backend_tokenizer
        backend.no_truncation()
        backend.no_padding()
        return backend.encode_batch(texts, add_special_tokens=False)

    def join(self, a: np.ndarray, b: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Ids and token types of one input row, special tokens put in; both int64 of the same length."""
        before, in_a, between, in_b, after = self.types
        if b is None:
            parts: list[tuple[Any, int]] = [(self.single[0], before), (a, in_a), (self.single[1], in_a)]
        else:
            parts = [
                (self.pair[0], before),
                (a, in_a),
                (self.pair[1], between),
                (b, in_b),
                (self.pair[2], after),
            ]
        ids = np.concatenate([np.asarray(part, dtype=np.int64) for part, _ in parts])
        types = np.repeat([kind for _, kind in parts], [len(part) for part, _ in parts])
        return ids, types.astype(np.int64)


def _frame(backend: Any) -> dict[str, Any]:
    """Which special tokens the tokenizer adds and where, read off two encodings of its own."""

    def runs(encoding: Any) -> list[tuple[bool, list[int], list[int]]]:
        found: list[tuple[bool, list[int], list[int]]] = []
        for token, kind, special in zip(
            encoding.ids, encoding.type_ids, encoding.special_tokens_mask, strict=True
        ):
            if not found or found[-1][0] != bool(special):
                found.append((bool(special), [], []))
            found[-1][1].append(token)
            found[-1][2].append(kind)
        return found

    backend.no_truncation()
    backend.no_padding()
    one, two = runs(backend.encode("1")), runs(backend.encode("1", "1"))
    if [special for special, *_ in one] != [True, False, True] or len(two) != 5:
        raise ValueError("it does not put special tokens around and between texts")
    return {
        "single": (tuple(one[0][1]), tuple(one[2][1])),
        "pair": (tuple(two[0][1]), tuple(two[2][1]), tuple(two[4][1])),
        "types": tuple(kinds[0] for _, _, kinds in two),
    }


def load_encoder(model: str | Path) -> Encoder:
    """The model's own tokenizer (``tokenizer.json`` or ``vocab.txt``).

    Raises:
        UserError: there is none, or its vocabulary does not fit the embedding table.
    """
    folder = locate(model)
    size = _config(folder).vocab_size
    try:
        with _quiet():
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    except Exception as error:  # each tokenizer class fails in its own way
        reason = str(error).strip().split("\n")[0]
        raise UserError(f"{folder} has no usable tokenizer ({reason}); put its vocab.txt there") from None
    if not size - PADDED_VOCABULARY < len(tokenizer) <= size:
        raise UserError(
            f"the tokenizer in {folder} has {len(tokenizer)} entries but the model {size}; "
            "put the vocabulary there that the model was trained with"
        )
    try:
        frame = _frame(tokenizer.backend_tokenizer)
    except (AttributeError, ValueError) as error:
        raise UserError(f"the tokenizer in {folder} cannot be used ({error}); choose another model") from None
    return Encoder(tokenizer, pad=tokenizer.pad_token_id or 0, **frame)


# --- weights --------------------------------------------------------------------------------------


def is_head(name: str, prefix: str) -> bool:
    """True for a parameter outside the encoder named ``prefix``; its pooler counts as a head."""
    return not name.startswith(f"{prefix}.") or name.startswith(f"{prefix}.pooler.")


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
    fits, so that a score never depends on what the folder was used for before; ``keep_head`` loads it.
    A pooler is kept where it is stored and drawn where it is not.

    Raises:
        UserError: the encoder's weights are missing or of another shape (names them), or cannot be read.
    """
    folder = locate(model)
    config = _config(folder)
    heads = {
        "text": transformers.AutoModelForSequenceClassification,
        "span": transformers.AutoModelForQuestionAnswering,
    }
    # keep_head without a count takes the stored one: a caller reloading a saved model need not know it
    labels = {} if num_labels is None else {"num_labels": num_labels}
    for name, value in labels.items():
        setattr(config, name, value)
    try:
        with _quiet():
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
    heads_of = {name for name in names if not name.startswith(f"{prefix}.")}
    init_head(network, new if keep_head else new | heads_of)
    return network.float().eval()


# --- facts ----------------------------------------------------------------------------------------


def _weights_sha256(folder: Path) -> str:
    """Of the one weights file, or of the concatenated hashes of its parts in the order of their names."""
    for name in WEIGHTS:
        path = folder / name
        if path.is_file():
            if not name.endswith(".json"):
                return sha256_file(path)
            parts = sorted(set(json.loads(path.read_text(encoding="utf-8"))["weight_map"].values()))
            return hashlib.sha256("".join(sha256_file(folder / part) for part in parts).encode()).hexdigest()
    raise UserError(f"{folder} has no weights; put {WEIGHTS[0]} or {WEIGHTS[2]} into it")


def _parameters(config: transformers.PretrainedConfig) -> int:
    """Parameters of the encoder with its embeddings, without pooler and heads."""
    with torch.device("meta"), _quiet():
        encoder = transformers.AutoModel.from_config(config)
    return sum(p.numel() for name, p in encoder.named_parameters() if not name.startswith("pooler."))


def model_facts(model: str | Path) -> dict[str, Any]:
    """What a record says of a model, without loading its weights.

    Returns:
        ``name`` (that of its manifest, else the Hub id with ``--`` for ``/``, else ``--`` and the folder's
        name), ``weights_sha256``, ``tokenizer_sha256`` (over the tokenizer's files), ``parameters`` of the
        encoder, ``revision`` (a Hub commit, or the config id of the folder's manifest, or None),
        ``family`` (``model_type``), ``hidden_size``, ``layers`` and ``vocabulary``.

    Raises:
        UserError: as :func:`locate` and :func:`load_encoder`.
    """
    folder = locate(model)
    config = _config(folder)
    load_encoder(model)
    manifest = json.loads((folder / MANIFEST).read_text("utf-8")) if (folder / MANIFEST).is_file() else {}
    from_hub = not Path(model).is_dir()
    name = str(model).replace("/", "--") if from_hub else manifest.get("name") or folder.resolve().name
    digest = hashlib.sha256()
    for path in sorted({path for pattern in TOKENIZER_FILES for path in folder.glob(pattern)}):
        digest.update(f"{path.name} {sha256_file(path)}\n".encode())
    return {
        "name": name,
        "weights_sha256": _weights_sha256(folder),
        "tokenizer_sha256": digest.hexdigest(),
        "parameters": _parameters(config),
        "revision": folder.name if from_hub else manifest.get("config_id"),
        "family": config.model_type,
        "hidden_size": config.hidden_size,
        "layers": config.num_hidden_layers,
        "vocabulary": config.vocab_size,
    }
