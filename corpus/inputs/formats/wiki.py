"""Articles of a MediaWiki export."""

from __future__ import annotations

import re
from collections.abc import Iterator

from corpus.config import CorpusConfig
from corpus.inputs.compression import DAMAGE, damaged
from corpus.inputs.documents import Document, Part, Tally
from corpus.inputs.formats.mediawiki import Page, chunks_of, read_pages
from corpus.wiki.wikitext import wikitext_to_text

_REDIRECT = re.compile(r"\s*#\s*(?:redirect|重定向)", re.IGNORECASE)
# The templates that make a page of zhwiki one of disambiguation (not those that ask for it: 需要消歧义).
_DISAMBIGUATION = re.compile(
    r"\{\{\s*(?:(?:template|模板|样板|樣板)\s*[:：]\s*)?(?:"
    r"dab|disamb|disambig(?:uation)?(?:[ _-](?:page|cleanup))?"
    r"|(?:hn|geo|school|road|number|letter|math)dis|twdisambig"
    r"|(?:人名|地名|学校|學校|道路|车站|車站|数字|數字|字母)?消歧[义義][页頁]?"
    r")\s*(?:\||\}\})",
    re.IGNORECASE,
)
_DISAMBIGUATION_TITLE = re.compile(r"[(（](?:消歧[义義]|disambiguation)[)）]$", re.IGNORECASE)


def _skip_page(page: Page, config: CorpusConfig) -> str | None:
    """Why a page is no article, or None."""
    if page.oversized:
        return "too large"
    if page.namespace.strip() != "0":
        return "namespace"
    if page.redirect or _REDIRECT.match(page.text):
        return "redirect"
    if page.model not in ("wikitext", ""):
        return "not wikitext"
    if config.keep_disambiguation:
        return None
    found = _DISAMBIGUATION_TITLE.search(page.title.strip()) or _DISAMBIGUATION.search(page.text)
    return "disambiguation" if found else None


def read_mediawiki(part: Part, config: CorpusConfig, tally: Tally) -> Iterator[Document]:
    """Namespace 0 without redirects and, by default, disambiguation pages."""
    path = part.file
    name = f"{path} from byte {part.start:,}" if part.start else str(path)
    try:
        for page in read_pages(chunks_of(path, part.start, part.end), name):
            tally.counts["pages"] += 1
            if reason := _skip_page(page, config):
                tally.skip(reason)
                continue
            key = f"wiki/{page.id}"
            try:
                text = wikitext_to_text(page.text, title=page.title, convert=config.convert)
            except Exception:
                tally.fail(Document(key, "wiki", page.title, page.text))
                continue
            yield Document(key, "wiki", page.title, text)
    except DAMAGE as error:
        raise damaged(path, error) from None
