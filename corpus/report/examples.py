"""Texts for the report: kept ones, what rules took, clusters of duplicates. Always the same few."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpus.job import Job, block_files, share_of

OF_RULE, OF_SOURCE, CLUSTERS_SHOWN = 5, 2, 6
BLOCKS_READ = 32  # blocks that kept texts are taken from
T = TypeVar("T")


@dataclass(frozen=True)
class Cluster:
    """Documents that are alike.

    Attributes:
        size: documents.
        least: the least similarity of one to the document that stays.
        first: id and text of that document.
        other: id and text of the document least like it.
    """

    size: int
    least: float
    first: tuple[str, str]
    other: tuple[str, str]


@dataclass(frozen=True)
class Found:
    """What the report shows of texts.

    Attributes:
        rejected: for each rule some texts it took.
        kept: for each source some documents (id, text).
        clusters: the largest clusters, then those whose members are least alike.
        sizes: for each number of documents how many clusters have it, ascending.
    """

    rejected: dict[str, list[str]]
    kept: dict[str, list[tuple[str, str]]]
    clusters: list[Cluster]
    sizes: dict[int, int]


def spread(items: Sequence[T], most: int) -> list[T]:
    """At most ``most`` of ``items``, evenly spaced, the first among them."""
    if len(items) <= most:
        return list(items)
    return [items[i * len(items) // most] for i in range(most)]


def rule_examples(files: Iterable[Path]) -> dict[str, list[str]]:
    """A few of the texts that each rule took, from several blocks."""
    examples: dict[str, list[str]] = {}
    for path in files:
        taken: dict[str, int] = {}
        for record in pq.read_table(path).to_pylist():
            rule, text = record["rule"], record["text"]
            texts = examples.setdefault(rule, [])
            if len(texts) < OF_RULE and taken.get(rule, 0) < 2 and text not in texts:
                texts.append(text)
                taken[rule] = taken.get(rule, 0) + 1
    return dict(sorted(examples.items()))


def kept_examples(files: Sequence[Path]) -> dict[str, list[tuple[str, str]]]:
    """Of each source the documents that sha256 of the id puts first, in some of the blocks."""
    found: dict[str, list[tuple[float, str, str]]] = {}
    for path in spread(files, BLOCKS_READ):
        table = pq.read_table(path, columns=["id", "source"])
        chosen: dict[str, list[tuple[float, str, int]]] = {}
        for place, (key, source) in enumerate(
            zip(table["id"].to_pylist(), table["source"].to_pylist(), strict=True)
        ):
            chosen.setdefault(source, []).append((share_of(f"report/{key}"), key, place))
        texts = pq.read_table(path, columns=["text"])["text"]
        for source, candidates in chosen.items():
            first = sorted(candidates)[:OF_SOURCE]
            mine = [(order, key, texts[place].as_py()) for order, key, place in first]
            found[source] = sorted(found.get(source, []) + mine)[:OF_SOURCE]
    return {source: [(key, text) for _, key, text in texts] for source, texts in sorted(found.items())}


def _texts(files: Iterable[Path], ids: Sequence[str]) -> dict[str, str]:
    """The texts of some documents. An id that several files have is that of the first."""
    wanted, found = pa.array(ids, type=pa.string()), dict[str, str]()
    for path in files:
        mask = pc.is_in(pq.read_table(path, columns=["id"])["id"], value_set=wanted)
        if pc.any(mask).as_py():
            table = pq.read_table(path, columns=["id", "text"]).filter(mask)
            for key, text in zip(table["id"].to_pylist(), table["text"].to_pylist(), strict=True):
                found.setdefault(key, text)
    return found


def _shown(summed: pa.Table) -> list[dict[str, Any]]:
    """Of clusters (cluster, size, least) the largest, then those least alike."""
    largest = summed.sort_by([("size", "descending"), ("cluster", "ascending")])[:CLUSTERS_SHOWN]
    near = pc.and_(
        pc.less(summed["least"], 1.0), pc.invert(pc.is_in(summed["cluster"], value_set=largest["cluster"]))
    )
    others = summed.filter(near).sort_by([("least", "ascending"), ("cluster", "ascending")])[:CLUSTERS_SHOWN]
    return [*largest.to_pylist(), *others.to_pylist()]


def cluster_examples(clusters: Path, files: Sequence[Path]) -> tuple[list[Cluster], dict[int, int]]:
    """The clusters to show, and how many have how many documents.

    Args:
        clusters: ``clusters.parquet``.
        files: with the text of every document, dropped ones too.
    """
    table = pq.read_table(clusters)
    grouped = table.group_by("cluster", use_threads=False).aggregate([("id", "count"), ("similarity", "min")])
    summed = grouped.select(["cluster", "id_count", "similarity_min"]).rename_columns(
        ["cluster", "size", "least"]
    )
    sizes = {v["values"]: v["counts"] for v in pc.value_counts(summed["size"]).to_pylist()}
    shown = _shown(summed)
    members: dict[int, list[dict[str, Any]]] = {}
    wanted = pa.array([c["cluster"] for c in shown], type=pa.int64())
    for member in table.filter(pc.is_in(table["cluster"], value_set=wanted)).to_pylist():
        members.setdefault(member["cluster"], []).append(member)
    pairs = []
    for cluster in shown:
        first, *others = members[cluster["cluster"]]
        pairs.append((first["id"], min(others, key=lambda member: member["similarity"])["id"]))
    texts = _texts(files, [key for pair in pairs for key in pair])
    found = [
        Cluster(c["size"], c["least"], (a, texts[a]), (b, texts[b]))
        for c, (a, b) in zip(shown, pairs, strict=True)
    ]
    return found, dict(sorted(sizes.items()))


def find_examples(job: Job) -> Found:
    """What the report of a build shows."""
    clusters, sizes = cluster_examples(job.work / "clusters.parquet", block_files(job, "signed"))
    return Found(
        rule_examples(sorted((job.work / "rejected").glob("*.parquet"))),
        kept_examples(block_files(job, "documents")),
        clusters,
        sizes,
    )
