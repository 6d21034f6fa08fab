"""Rows of a task file, whatever its format: tab-separated, CSV, JSON lines, Parquet.

The format goes by the file's ending. A row is a dict by our column names (``text_a``, ``text_b``, ``label``).
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.task import Task
from provenance import UserError

Rows = Iterator[tuple[int, dict[str, str]]]


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


def read_tsv(task: Task, path: Path, *, labelled: bool = True) -> Rows:
    """Rows of a tab-separated file with their line numbers from 1.

    Only a tab separates columns and only ``\\n`` rows; quotes are text. The first line is a header
    when it names a label and a text column; without one the columns are the task's.

    Raises:
        UserError: a row has another number of columns.
    """
    text = decode(path).rstrip("\r\n")
    lines = enumerate(text.split("\n"), start=1) if text else iter(())
    fields = ((number, line.removesuffix("\r").split("\t")) for number, line in lines)
    return _named(task, path, fields, labelled, "separated by one tab")


def read_csv(task: Task, path: Path, *, labelled: bool = True) -> Rows:
    """Rows of a comma-separated file; a field in double quotes may hold commas, line ends and ``""``.

    The header is recognised as in :func:`read_tsv`.

    Raises:
        UserError: a row has another number of columns, or a quote is never closed.
    """
    reader = csv.reader(io.StringIO(decode(path), newline=""), strict=True)

    def fields() -> Iterator[tuple[int, list[str]]]:
        try:
            for row in reader:
                if row:
                    yield reader.line_num, row
        except csv.Error as error:
            raise UserError(f"{path}:{reader.line_num} is not CSV ({error}); mend it") from None

    return _named(task, path, fields(), labelled, "separated by commas, texts with commas in double quotes")


def _named(task: Task, path: Path, rows: Iterator[tuple[int, list[str]]], labelled: bool, how: str) -> Rows:
    """Rows of fields as dicts, by the header where there is one."""
    wanted = [name for name in task.columns if labelled or name != "label"]
    names: list[str] = []
    for number, fields in rows:
        if not names:
            names = [task.column_names.get(name, name) for name in fields]
            if "text_a" in names and ("label" in names or not labelled):
                if absent := [name for name in wanted if name not in names]:
                    raise UserError(
                        f"{path}:{number} has no column {', '.join(absent)}; "
                        f"name the columns {', '.join(wanted)}"
                    )
                continue
            names = list(task.columns if labelled or len(fields) == len(task.columns) else wanted)
        if len(fields) != len(names):
            told = ", ".join(names) if len(names) <= 4 else "as the header has"
            raise UserError(
                f"{path}:{number} has {len(fields)} column(s), not {len(names)} ({told}); "
                f"mend the line: columns are {how}"
            )
        yield number, dict(zip(names, fields, strict=True))


def read_json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Objects of a file with one on each line (or of one JSON list), with their line numbers from 1.

    Raises:
        UserError: a line is not a JSON object.
    """
    text = decode(path)
    try:
        if text.lstrip().startswith("["):
            found = list(enumerate(json.loads(text), start=1))
        else:
            lines = ((n, line) for n, line in enumerate(text.split("\n"), start=1) if line.strip())
            found = []
            for number, line in lines:
                try:
                    found.append((number, json.loads(line)))
                except json.JSONDecodeError as error:
                    raise UserError(f"{path}:{number} is not JSON ({error.msg}); mend it") from None
    except json.JSONDecodeError as error:
        raise UserError(f"{path}:{error.lineno} is not JSON ({error.msg}); mend it") from None
    for number, row in found:
        if not isinstance(row, dict):
            raise UserError(f"{path}:{number} is not a JSON object; give one object a line")
    yield from found


def read_parquet(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Rows of a Parquet file as the Hub keeps data sets, with their numbers from 1; classes by their names.

    Raises:
        UserError: it is no Parquet file.
    """
    import datasets  # takes seconds
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(path)
        features = datasets.Features.from_arrow_schema(table.schema)
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        reason = str(error).split("\n")[0]
        raise UserError(f"{path} is not a Parquet file ({reason}); fetch it again") from None
    classes = {name: f for name, f in features.items() if isinstance(f, datasets.ClassLabel)}
    for number, row in enumerate(table.to_pylist(), start=1):
        for name, feature in classes.items():
            if row[name] is not None and 0 <= row[name] < len(feature.names):  # -1: no label
                row[name] = feature.int2str(row[name])
        yield number, row


def _objects(
    read: Callable[[Path], Iterator[tuple[int, dict[str, Any]]]], task: Task, path: Path, labelled: bool
) -> Rows:
    """Objects as rows of texts under our column names."""
    wanted = [name for name in task.columns if labelled or name != "label"]
    for number, row in read(path):
        named = {task.column_names.get(name, name): value for name, value in row.items()}
        if absent := [name for name in wanted if named.get(name) is None]:
            raise UserError(f"{path}:{number} has no {', '.join(absent)}; name them {', '.join(wanted)}")
        yield number, {name: str(value) for name, value in named.items() if value is not None}


def read_rows(task: Task, path: Path, *, labelled: bool = True) -> Rows:
    """Rows of a file of a classification task with their numbers; ``labelled``: each must have a label.

    Raises:
        UserError: the file cannot be read, or is not as its format or the task wants it (with the line).
    """
    if path.suffix in (".json", ".jsonl"):
        return _objects(read_json_lines, task, path, labelled)
    if path.suffix == ".parquet":
        return _objects(read_parquet, task, path, labelled)
    read = read_csv if path.suffix == ".csv" else read_tsv
    return read(task, path, labelled=labelled)


def span_articles(path: Path) -> list[Any]:
    """The articles of a span file: of SQuAD's JSON, or one made of each row of JSON lines or Parquet.

    Such a row has ``id``, ``context``, ``question`` and ``answers``, as data sets on the Hub have.

    Raises:
        UserError: not JSON (with the line), or no list ``data``.
    """
    if path.suffix in (".jsonl", ".parquet"):
        read = read_parquet if path.suffix == ".parquet" else read_json_lines
        return [_article(path, number, row) for number, row in read(path)]
    try:
        document = json.loads(decode(path))
    except json.JSONDecodeError as error:
        raise UserError(
            f"{path}:{error.lineno} is not JSON ({error.msg}); mend it or fetch the file again"
        ) from None
    articles = document.get("data") if isinstance(document, dict) else document
    if not isinstance(articles, list):
        raise UserError(f"{path} has no list `data`; give a SQuAD-style file")
    return articles


def _article(path: Path, number: int, row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as an article of one question; its answers may be a list of dicts or a dict of lists."""
    answers = row.get("answers") or []
    if isinstance(answers, Mapping):
        try:
            pairs = list(zip(answers["text"], answers["answer_start"], strict=True))
        except (KeyError, TypeError, ValueError):
            raise UserError(
                f"{path}:{number} has answers that are not as many texts as places; give lists `text` and "
                "`answer_start` of the same length"
            ) from None
        answers = [{"text": text, "answer_start": start} for text, start in pairs]
    return {"context": row.get("context"), "qas": [{**row, "answers": answers}]}
