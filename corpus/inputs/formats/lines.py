"""Text and JSON lines, in any encoding of Chinese."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import BinaryIO

from corpus.config import CorpusConfig
from corpus.inputs.compression import DAMAGE, damaged, opened
from corpus.inputs.documents import MAX_DOCUMENT, Document, Part, Tally, stem
from corpus.inputs.encoding import characters, guess_encoding, quality
from provenance import UserError

HEAD = 1 << 18  # bytes by which a file's encoding is told
_LEAST_QUALITY = 0.1  # share of frequent characters; Chinese text has about 0.3
_NAMES = {"big5": "big5hkscs"}  # what an option means to Python, where that is another name


def _raw_lines(file: BinaryIO) -> Iterator[bytes | None]:
    """Lines with their ends, in bounded memory: None stands for one of more than ``MAX_DOCUMENT`` bytes."""
    while line := file.readline(MAX_DOCUMENT):
        if len(line) < MAX_DOCUMENT or line.endswith(b"\n"):
            yield line
        else:
            while (rest := file.readline(1 << 20)) and not rest.endswith(b"\n"):
                pass
            yield None


def recoded(payload: bytes, config: CorpusConfig) -> bytes:
    """A page in the encoding that the option names, as UTF-8."""
    text = characters(payload, encoding_of(payload, config) or "utf-8", "replace")
    return text.encode("utf-8", "replace")


def encoding_of(head: bytes, config: CorpusConfig) -> str | None:
    """The encoding of a file that begins like this, or None if it reads as Chinese in none that we know."""
    if config.encoding != "auto":
        return _NAMES.get(config.encoding, config.encoding)
    encoding = guess_encoding(head)
    if encoding in ("utf-8", "utf-8-sig"):
        return "utf-8"
    return encoding if quality(head, encoding) >= _LEAST_QUALITY else None


def _lines(part: Part, config: CorpusConfig) -> Iterator[tuple[int, str | None]]:
    """Numbered lines without their ends; only ``\\n`` ends a line (U+2028 does not); no byte order mark.

    None stands for a line of more than ``MAX_DOCUMENT`` bytes.
    """
    path, number = part.file, part.line - 1
    try:
        with opened(path) as file:
            encoding = encoding_of(file.read(HEAD), config)
        if encoding and encoding.startswith("utf-16"):
            raise UserError(f"{path} is in UTF-16; convert it to UTF-8")
        advice = "convert the file" if encoding else "give --encoding, or convert the file"
        with opened(path, part.start, part.end) as file:
            for number, raw in enumerate(_raw_lines(file), part.line):
                if raw is None:
                    yield number, None
                    continue
                try:
                    line = characters(raw, encoding or "utf-8")
                except UnicodeDecodeError as error:
                    while file.read(1 << 20):  # where check sums stand behind it, damage shows only there
                        pass
                    raise UserError(
                        f"{path} line {number} is not {(encoding or 'utf-8').upper()} "
                        f"(at its byte {error.start + 1}); {advice}"
                    ) from None
                yield number, line.removeprefix("\ufeff" if number == 1 else "").rstrip("\r\n")
    except DAMAGE as error:
        raise damaged(path, error, f" after line {number}") from None


def document_of(key: str, source: str, entry: Mapping[str, object], text: str) -> Document:
    """The document of a row, whose own id and source come before those given."""

    def value(name: str, default: str) -> str:
        given = entry.get(name)
        return default if given is None or given == "" else str(given)

    return Document(value("id", key), value("source", source), value("title", ""), text)


def read_json_lines(part: Part, config: CorpusConfig, tally: Tally) -> Iterator[Document]:
    """One object a line; those without an id are numbered by their line."""
    path, name = part.path, stem(part.file)
    for number, line in _lines(part, config):
        if line is None:
            tally.skip("too large")
            continue
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{path} line {number} is not JSON ({error}); give one object a line") from None
        if not isinstance(entry, dict):
            raise UserError(f"{path} line {number} is JSON, but no object; give one object a line")
        text = entry.get(config.text_key, False)  # null is no text, but a missing key is a mistake
        if not isinstance(text, str | None):
            raise UserError(f'{path} line {number} has no text under "{config.text_key}"; give --text-key')
        yield document_of(f"{name}/{number}", name, entry, text or "")


def read_text(part: Part, config: CorpusConfig, tally: Tally) -> Iterator[Document]:
    """Documents of a text file, divided as the option says."""
    path = part.file.resolve()
    name, whole = stem(path), config.text_documents == "file"
    paragraphs: list[str] = []
    number, size = part.number, 0
    for at, line in _lines(part, config):
        size += MAX_DOCUMENT if line is None else len(line)
        if line is None or size > MAX_DOCUMENT:
            raise UserError(
                f"{path} line {at}: a document of more than {MAX_DOCUMENT // 2**20} MiB; divide documents by "
                "blank lines, or give --text-documents line if each line is one"
            )
        if line.strip() or whole:
            paragraphs.append(line)
        if paragraphs and not whole and (not line.strip() or config.text_documents == "line"):
            yield Document(f"{name}/{number}", name, "", "\n".join(paragraphs))
            number += 1
            paragraphs.clear()
        if not paragraphs:
            size = 0
    if whole:
        folder = path.parent.name
        yield Document(f"{folder}/{name}", folder, "", "\n".join(paragraphs))
    elif paragraphs:
        yield Document(f"{name}/{number}", name, "", "\n".join(paragraphs))
