"""What a benchmark task is: its files, labels, metric and defaults, as data.

The tasks themselves are in ``benchmarks/tasks/``, one file each.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["span", "pair", "single"]


@dataclass(frozen=True)
class File:
    """One published file of a task, stored as ``DATA/<task>/<name>``.

    Attributes:
        name: file name in the task's folder.
        rows: published number of examples (questions, pairs or texts), without header or other languages.
        sha256: hex digest of the published file; None where it is not known to us.
        urls: where the file, or an archive that holds it, can be downloaded; empty where one must apply.
        member: path inside the archive when ``urls`` name a zip archive; matched from its end, so that
            ``train.tsv`` also finds ``folder/train.tsv``.
    """

    name: str
    rows: int | None = None
    sha256: str | None = None
    urls: tuple[str, ...] = ()
    member: str | None = None


@dataclass(frozen=True)
class Task:
    """A benchmark task.

    Attributes:
        name: short name, as on the command line and in record paths.
        title: the name in ``results/reference/published_results.csv``.
        kind: ``span`` (extraction), ``pair`` or ``single`` (classification of two texts or one).
        version: version of the data and of this description; part of every record's identity.
        script: ``hans`` or ``hant``, the script most of its text is written in.
        files: split name (``train``, ``dev``, ``test``) to :class:`File`.
        metrics: metric names in the order of the tables; ``main_metric`` is the one results are ranked by.
        max_length: longest input in tokens, ``[CLS]`` and ``[SEP]`` counted.
        epochs: fine-tuning epochs over the training split.
        licence: of the data; ``apply`` says how to get files that have no URL.
        columns: column order of a table without header.
        column_names: header name in a published file -> ours (``text_a``, ``text_b``, ``label``).
        language: of a table with a language column, the only one that is read.
        labels: class names in the order of their numbers.
        label_aliases: other spellings of a label.
        join_chinese: remove spaces beside Chinese characters (a word-segmented training file).
        own_metric: entry of :data:`benchmarks.metrics.SPAN_METRICS`, where the task's own scorer is not
            CMRC 2018's: its scores are given besides.
        max_answer_length: longest predicted answer in tokens (span tasks).
        learning_rates: model family -> learning rate on this task, as HFL published it for the base size
            (ELECTRA's depends on size alone).
        stand_in: file that trains in place of an absent training file, under the reduced protocol.
        note: what a reader of the scores must know.
        order: place in listings and tables.
    """

    name: str
    title: str
    kind: Kind
    version: str
    script: Literal["hans", "hant"]
    files: Mapping[str, File]
    metrics: tuple[str, ...]
    main_metric: str
    max_length: int
    epochs: int
    licence: str
    citation: str
    homepage: str
    apply: str = ""
    columns: tuple[str, ...] = ()
    column_names: Mapping[str, str] = field(default_factory=dict)
    language: str | None = None
    labels: tuple[str, ...] = ()
    label_aliases: Mapping[str, str] = field(default_factory=dict)
    join_chinese: bool = False
    own_metric: str = ""
    max_answer_length: int | None = None
    learning_rates: Mapping[str, float] = field(default_factory=dict)
    stand_in: File | None = None
    note: str = ""
    order: int = 100

    @property
    def head(self) -> Literal["span", "text"]:
        """Which head is fine-tuned: for spans, or for texts and pairs (:data:`finetune.models.Kind`)."""
        return "span" if self.kind == "span" else "text"

    def label_number(self, text: str) -> int | None:
        """The class number of a label as spelled in a file; None when it is not one of this task's."""
        text = self.label_aliases.get(text, text)
        return self.labels.index(text) if text in self.labels else None


def identity(task: Task) -> dict[str, object]:
    """What of a task can change a score: everything but where its files lie and what is said about it."""
    hidden = {"files", "licence", "citation", "homepage", "apply", "note", "stand_in", "title", "order"}
    hidden.add("learning_rates")  # the one that counts is in the settings
    hidden.add("own_metric")  # more scores of the same predictions
    return {f.name: getattr(task, f.name) for f in dataclasses.fields(task) if f.name not in hidden}
