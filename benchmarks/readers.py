"""Reading task files into examples.

Contexts and answers stay byte for byte as they are in the file: a cleaned context would shift every answer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.formats import read_rows, span_articles
from benchmarks.task import Task
from finetune.examples import SpanExample, TextExample
from provenance import UserError


def read_file(
    task: Task,
    path: Path,
    counts: Counter[str] | None = None,
    split: str | None = None,
    *,
    training: bool = False,
    labelled: bool = True,
) -> list[Any]:
    """All examples of one file.

    Args:
        task: says the format, columns and labels.
        path: the file.
        counts: filled with ``dropped: ...`` and other reasons.
        split: names the rows of a table, ``<split>-<n>`` from 0; by default the file's stem.
        training: drop rows that cannot train (an empty text); evaluation rows are kept.
        labelled: refuse rows of a table without a label; else their label is None.

    Raises:
        UserError: the file cannot be read or a row is malformed, with its line.
    """
    counts = Counter() if counts is None else counts
    if task.kind == "span":
        return read_spans(path, counts)
    return read_texts(task, path, counts, split or path.stem, training=training, labelled=labelled)


# --- tables ---------------------------------------------------------------------------------------

_CHINESE = "[\u3001-\u303f\u3400-\u9fff\uf900-\ufaff\uff01-\uff65]"
_SPACE_BY_CHINESE = re.compile(f"(?<={_CHINESE}) +| +(?={_CHINESE})")


def join_chinese(text: str) -> str:
    """``text`` without spaces beside Chinese characters and marks: a segmenter put them there."""
    return _SPACE_BY_CHINESE.sub("", text)


def read_texts(
    task: Task,
    path: Path,
    counts: Counter[str],
    split: str,
    *,
    training: bool = False,
    labelled: bool = True,
) -> list[TextExample]:
    """The rows of a classification table as examples."""
    examples = []
    number = -1
    for line, row in read_rows(task, path, labelled=labelled):
        if task.language and row.get("language", task.language) != task.language:
            counts["other languages"] += 1
            continue
        number += 1
        given = row.get("label", "").strip()
        label = task.label_number(given)
        if label is None and labelled:
            raise UserError(
                f"{path}:{line} has the label {given!r}, not one of {', '.join(task.labels)}; mend it"
            )
        texts = [row["text_a"], row["text_b"]] if task.kind == "pair" else [row["text_a"]]
        if task.join_chinese:
            texts = [join_chinese(text) for text in texts]
        if training and not all(text.strip() for text in texts):
            counts["dropped: empty text"] += 1
            continue
        examples.append(
            TextExample(f"{split}-{number}", texts[0], texts[1] if len(texts) > 1 else None, label)
        )
    return examples


# --- questions ------------------------------------------------------------------------------------


def read_spans(path: Path, counts: Counter[str]) -> list[SpanExample]:
    """The questions of a SQuAD-style file, of CMRC 2018's own flat one, or of rows, as examples.

    Raises:
        UserError: not JSON (with the line), no ``data``, a field is missing, or two questions share an id.
    """
    articles = span_articles(path)
    examples: list[SpanExample] = []
    seen: set[str] = set()
    for place, article in enumerate(articles):
        try:
            # SQuAD nests paragraphs in articles; CMRC 2018's own format has them at the top.
            for paragraph in article.get("paragraphs", [article]):
                context = paragraph["context"] if "context" in paragraph else paragraph["context_text"]
                for question in paragraph["qas"]:
                    example = _span(context, question, counts)
                    if example.id in seen:
                        raise UserError(f"{path} has the question id {example.id} twice; ids must differ")
                    seen.add(example.id)
                    examples.append(example)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise UserError(
                f"{path}: entry {place} of `data` has no paragraphs of context and qas ({error!r}); "
                "give a SQuAD-style file"
            ) from None
    return examples


def _span(context: str, question: Mapping[str, Any], counts: Counter[str]) -> SpanExample:
    answers, start = [], None
    for place, answer in enumerate(question.get("answers", [])):
        flat = not isinstance(answer, Mapping)
        text = str(answer if flat else answer["text"])
        answers.append(text)
        if place == 0:  # further answers are other people's, kept for scoring only
            # CMRC 2018's flat format has no places: its annotators marked the first occurrence.
            given = context.find(text) if flat else int(answer["answer_start"])
            start = answer_start(context, text, given)
            counts["answer_start in UTF-16 units"] += start is not None and start != given
    counts["no answer"] += not answers
    counts["unalignable answer"] += bool(answers) and start is None
    key = question["id"] if "id" in question else question["query_id"]
    asked = question["question"] if "question" in question else question["query_text"]
    if not isinstance(context, str) or not isinstance(asked, str):
        raise TypeError("context or question is not a text")
    return SpanExample(str(key), asked, context, tuple(answers), start)


def answer_start(context: str, answer: str, start: int) -> int | None:
    """Index of ``answer`` in ``context`` in characters, by a start in characters or UTF-16 units.

    CMRC 2018 counts a character beyond U+FFFF as two.

    None when it stands at neither: it is never searched for, as another occurrence is another answer.
    """
    if start < 0 or not answer:
        return None
    if context.startswith(answer, start):
        return start
    before = context.encode("utf-16-le")[: 2 * start].decode("utf-16-le", errors="ignore")
    return len(before) if context.startswith(answer, len(before)) else None
