"""Pages of web archives and HTML files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from corpus.config import CorpusConfig
from corpus.inputs.compression import DAMAGE, damaged, opened
from corpus.inputs.documents import MAX_DOCUMENT, Document, Part, Tally, stem
from corpus.inputs.formats.lines import recoded

_HTML = re.compile(rb"<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)


def _is_html(content_type: str, payload: bytes) -> bool:
    if content_type:
        return "html" in content_type.lower()
    return bool(_HTML.search(payload[:2048]))


def _page(
    key: str, payload: bytes, content_type: str | None, config: CorpusConfig, tally: Tally
) -> Iterator[Document]:
    from corpus.web.main_text import html_to_text  # half a second, which other formats need not wait

    tally.counts["pages"] += 1
    try:
        if config.encoding != "auto":
            payload, content_type = recoded(payload, config), None
        title, text = html_to_text(payload, content_type=content_type)
    except Exception:
        tally.fail(Document(key, "web", "", payload[:MAX_DOCUMENT].decode("utf-8", "replace")))
    else:
        yield Document(key, "web", title, text)


def read_warc(part: Part, config: CorpusConfig, tally: Tally) -> Iterator[Document]:
    """HTML responses (WARC), and texts that were extracted from such (WET)."""
    from corpus.inputs.formats.warc import read_records

    path = part.file
    with opened(path) as file:
        for record in read_records(file, path):
            tally.counts["records"] += 1
            key = record.address or f"{stem(path)}/{record.number}"
            if record.oversized:
                tally.skip("too large")
            elif record.kind == "conversion" and record.content_type.startswith("text/plain"):
                yield Document(key, "web", "", record.payload.decode("utf-8", "replace"))
            elif record.kind != "response":
                tally.skip("not a response")
            elif record.status[:1] not in ("2", ""):
                tally.skip("status")
            elif not _is_html(record.content_type, record.payload):
                tally.skip("not HTML")
            else:
                yield from _page(key, record.payload, record.content_type, config, tally)


def read_html(part: Part, config: CorpusConfig, tally: Tally) -> Iterator[Document]:
    """One page; its id is the name of its folder and its own."""
    path = part.file.resolve()
    try:
        with opened(path) as file:
            payload = file.read(MAX_DOCUMENT + 1)
    except DAMAGE as error:
        raise damaged(path, error) from None
    if len(payload) > MAX_DOCUMENT:
        tally.skip("too large")
    else:
        yield from _page(f"{path.parent.name}/{stem(path)}", payload, None, config, tally)
