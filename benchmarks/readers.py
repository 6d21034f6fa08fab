"""Reading task files into examples.

Contexts and answers stay byte for byte as they are in the file: a cleaned context would shift every answer.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

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
) -> list[Any]:
    """All examples of one file.

    Args:
        task: says the format, columns and labels.
        path: the file.
        counts: filled with ``dropped: ...`` and other reasons.
        split: names the rows of a table, ``<split>-<n>`` from 0; by default the file's stem.
        training: drop rows that cannot train (an empty text); evaluation rows are kept.

    Raises:
        UserError: the file cannot be read or a row is malformed, with its line.
    """
    counts = Counter() if counts is None else counts
    if task.kind == "span":
        return read_spans(path, counts)
    return read_texts(task, path, counts, split or path.stem, training=training)


# --- tables ---------------------------------------------------------------------------------------


def decode(path: Path) -> str:
    """The text of a UTF-8 file, with or without a byte order mark.

    Raises:
        UserError: the file is missing or is not UTF-8 (with the line).
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}); check the path") from None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise UserError(f"{path}:{line} is not UTF-8; convert the file to UTF-8") from None


def read_table(task: Task, path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows of a tab-separated file with their line numbers from 1; keys are our column names.

    Only a tab separates columns and only ``\\n`` rows; quotes are text. The first line is a header
    when it names a label and a text column; without one the columns are the task's.

    Raises:
        UserError: a row has another number of columns.
    """
    text = decode(path).rstrip("\r\n")
    lines = text.split("\n") if text else [""]
    names = [task.column_names.get(name, name) for name in lines[0].rstrip("\r").split("\t")]
    header = "label" in names and "text_a" in names
    if not header:
        names = list(task.columns)
    elif absent := [name for name in task.columns if name not in names]:
        raise UserError(
            f"{path}:1 has no column {', '.join(absent)}; name the columns {', '.join(task.columns)}"
        )
    for number, line in enumerate(lines, start=1):
        line = line.removesuffix("\r")
        if not text or (header and number == 1):
            continue
        fields = line.split("\t")
        if len(fields) != len(names):
            wanted = ", ".join(names) if len(names) <= 4 else "as the header has"
            raise UserError(
                f"{path}:{number} has {len(fields)} column(s), not {len(names)} ({wanted}); "
                "mend the line: columns are separated by one tab"
            )
        yield number, dict(zip(names, fields, strict=True))


_CHINESE = "[\u3001-\u303f\u3400-\u9fff\uf900-\ufaff\uff01-\uff65]"
_SPACE_BY_CHINESE = re.compile(f"(?<={_CHINESE}) +| +(?={_CHINESE})")


def join_chinese(text: str) -> str:
    """``text`` without spaces beside Chinese characters and marks: a segmenter put them there."""
    return _SPACE_BY_CHINESE.sub("", text)


def read_texts(
    task: Task, path: Path, counts: Counter[str], split: str, *, training: bool = False
) -> list[TextExample]:
    """The rows of a classification table as examples."""
    examples = []
    number = -1
    for line, row in read_table(task, path):
        if task.language and row.get("language", task.language) != task.language:
            counts["other languages"] += 1
            continue
        number += 1
        label = task.label_number(row["label"].strip())
        if label is None:
            raise UserError(
                f"{path}:{line} has the label {row['label']!r}, not one of {', '.join(task.labels)}; mend it"
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
    """The questions of a SQuAD-style file, or of CMRC 2018's own flat one, as examples.

    Raises:
        UserError: not JSON (with the line), no ``data``, a field is missing, or two questions share an id.
    """
    try:
        document = json.loads(decode(path))
    except json.JSONDecodeError as error:
        raise UserError(
            f"{path}:{error.lineno} is not JSON ({error.msg}); mend it or fetch the file again"
        ) from None
    articles = document.get("data") if isinstance(document, dict) else document
    if not isinstance(articles, list):
        raise UserError(f"{path} has no list `data`; give a SQuAD-style file")
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
