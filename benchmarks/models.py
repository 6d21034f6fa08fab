"""Published encoders: their Hub ids, and the learning rates they were published with.

Any other encoder works too; it gets the rates of its family (:mod:`benchmarks.settings`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Family = Literal["bert", "electra", "ernie"]

_ELECTRA = "github:ymcui/Chinese-ELECTRA README (by size)"
_WWM = "github:ymcui/Chinese-BERT-wwm README (by task)"
_MINI = "github:iflytek/MiniRBT README (all tasks)"
_UNSTATED = "not published: the family's"


@dataclass(frozen=True)
class Encoder:
    """A published encoder.

    Attributes:
        hub: its id on the Hugging Face Hub.
        title: its name in ``results/reference/published_results.csv``.
        family: ``model_type`` of its configuration.
        source: where the learning rates of its published scores are stated.
        learning_rate: one rate for all tasks; None where it follows the family, by size or task.
        pretraining: the size in ``pretrain.config.PRESETS`` whose schedule is that of its pretraining.
    """

    hub: str
    title: str
    family: Family
    source: str
    learning_rate: float | None = None
    pretraining: str | None = None


def _electra(name: str, size: str, title: str) -> Encoder:
    return Encoder(f"hfl/chinese-electra-{name}-discriminator", title, "electra", _ELECTRA, pretraining=size)


_ALL = (
    Encoder("google-bert/bert-base-chinese", "BERT-base (Google)", "bert", _WWM),
    Encoder("hfl/chinese-bert-wwm", "BERT-wwm", "bert", _WWM),
    Encoder("hfl/chinese-bert-wwm-ext", "BERT-wwm-ext", "bert", _WWM),
    Encoder("hfl/chinese-roberta-wwm-ext", "RoBERTa-wwm-ext", "bert", _WWM),
    Encoder("hfl/chinese-roberta-wwm-ext-large", "RoBERTa-wwm-ext-large", "bert", _WWM),
    Encoder("hfl/rbt3", "RBT3", "bert", _MINI, 1e-4),
    Encoder("hfl/minirbt-h256", "MiniRBT-H256", "bert", _MINI, 1e-4),
    Encoder("hfl/minirbt-h288", "MiniRBT-H288", "bert", _MINI, 1e-4),
    Encoder("hfl/chinese-macbert-base", "MacBERT-base", "bert", "arXiv:1906.08101 Table IV (by task)"),
    Encoder("hfl/chinese-macbert-large", "MacBERT-large", "bert", "arXiv:1906.08101 Table IV (by task)"),
    Encoder("hfl/chinese-lert-small", "LERT-small", "bert", _UNSTATED),
    Encoder("hfl/chinese-lert-base", "LERT-base", "bert", _UNSTATED),
    Encoder("hfl/chinese-lert-large", "LERT-large", "bert", _UNSTATED),
    Encoder("hfl/chinese-pert-base", "PERT-base", "bert", _UNSTATED),
    Encoder("hfl/chinese-pert-large", "PERT-large", "bert", _UNSTATED),
    Encoder("nghuyong/ernie-1.0-base-zh", "ERNIE 1.0 (base)", "ernie", _WWM),
    Encoder("nghuyong/ernie-3.0-base-zh", "ERNIE 3.0-Base-zh", "ernie", "ours, as for BERT", 3e-5),
    _electra("small", "small", "ELECTRA-small"),
    _electra("small-ex", "small-ex", "ELECTRA-small-ex"),
    _electra("base", "base", "ELECTRA-base"),
    _electra("large", "large", "ELECTRA-large"),
    _electra("180g-small", "small", "ELECTRA-180g-small"),
    _electra("180g-small-ex", "small-ex", "ELECTRA-180g-small-ex"),
    _electra("180g-base", "base", "ELECTRA-180g-base"),
    _electra("180g-large", "large", "ELECTRA-180g-large"),
)
ENCODERS: Mapping[str, Encoder] = MappingProxyType({encoder.hub: encoder for encoder in _ALL})
