"""What the networks of a system share.

A new way is one function and one entry in :data:`SHARINGS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional


class Disentangled(nn.Embedding):
    """A table that is another's, detached, plus a residual of its own (``weight``), which starts at 0."""

    def __init__(self, source: nn.Embedding) -> None:
        super().__init__(source.num_embeddings, source.embedding_dim, source.padding_idx)
        nn.init.zeros_(self.weight)
        self.follow(source)

    def follow(self, source: nn.Embedding) -> None:
        """Be a residual to ``source``; in a tuple, so that its weights are not found here as well."""
        self._source = (source,)

    def base(self) -> torch.Tensor:
        """(entries, width) the other table; no gradient reaches it."""
        return self._source[0].weight.detach()

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return super().forward(ids) + functional.embedding(ids, self.base())


def word_table(network: Any) -> torch.Tensor:
    """(vocabulary, width) what ``network`` looks words up in, and what its output over the vocabulary is."""
    words = network.get_input_embeddings()
    return words.base() + words.weight if isinstance(words, Disentangled) else words.weight


def share_embeddings(networks: list[Any]) -> None:
    """One module of embeddings, LayerNorm included, for all networks: that of the first."""
    for network in networks:
        network.electra.embeddings = networks[0].electra.embeddings


def share_nothing(networks: list[Any]) -> None:
    """Each network has weights of its own."""


def share_all(networks: list[Any]) -> None:
    """One encoder for all networks, that of the first; the heads are their own."""
    for network in networks:
        network.electra = networks[0].electra


def share_detached(networks: list[Any]) -> None:
    """The word table of the first network is the last's, detached, plus a residual.

    So the discriminator knows the generator's words and does not pull at them: gradient-disentangled
    embedding sharing (He et al. 2021, DeBERTaV3, arXiv:2111.09543). Positions, types and LayerNorm are each
    network's own.
    """
    first, *others = networks
    if others:
        source, words = others[-1].get_input_embeddings(), first.get_input_embeddings()
        if isinstance(words, Disentangled):
            words.follow(source)
        else:
            first.set_input_embeddings(Disentangled(source).to(words.weight.device))


@dataclass(frozen=True)
class Sharing:
    """A way of sharing, with what follows from it."""

    tie: Callable[[list[Any]], None]
    """Of the networks, in the order of ``Electra.parts``; called after anything that may have copied
    parameters."""
    couples: bool = False
    """Training the first network changes the others, which then cannot stay as they are."""
    equal_sizes: bool = False
    """The networks must have one shape."""


SHARINGS: dict[str, Sharing] = {
    "embeddings": Sharing(share_embeddings, couples=True),
    "none": Sharing(share_nothing),
    "all": Sharing(share_all, couples=True, equal_sizes=True),
    "gdes": Sharing(share_detached),
}
