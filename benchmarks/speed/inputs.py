"""Large inputs out of small ones: repeated, and changed each time so that no two copies are alike."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from corpus.inputs.formats.mediawiki import Page, chunks_of, read_pages
from corpus.inputs.sources import Document, read_documents
from corpus.script import HAN
from provenance import UserError, atomic_file

SHUFFLED = 2000  # most frequent Han characters that trade places in a copy


def _exchanges(texts: Sequence[str], copies: int) -> Iterator[dict[int, int]]:
    """For each copy, which Han character stands for which: none in the first, then chosen by its number.

    Neighbours in frequency trade places, so that a copy has the statistics of the text but other n-grams.
    """
    frequency: dict[str, int] = {}
    for text in texts:
        for character in HAN.findall(text):
            frequency[character] = frequency.get(character, 0) + 1
    ranked = sorted(frequency, key=lambda c: (-frequency[c], c))[:SHUFFLED]
    for copy in range(copies):
        table: dict[int, int] = {}
        for first in range(0, len(ranked), 20):
            group = ranked[first : first + 20]
            turned = random.Random(f"{copy}/{first}").sample(group, len(group)) if copy else group
            table |= {ord(a): ord(b) for a, b in zip(group, turned, strict=True)}
        yield table


def repeat_text(paths: Sequence[Path], target: Path, size: int) -> int:
    """Write the documents of ``paths`` over and over as JSON lines (gz), about ``size`` bytes of UTF-8 text.

    Returns the bytes of text written. The first copy is the documents themselves.
    """
    documents: list[Document] = [d for path in paths for d in read_documents(path)]
    whole = sum(len(d.text.encode()) for d in documents)
    if not whole:
        raise UserError(f"{paths[0]} and the other files of --text hold no text; give other files")
    written = 0
    with atomic_file(target) as partial, gzip.open(partial, "wt", compresslevel=1, encoding="utf-8") as file:
        for copy, table in enumerate(_exchanges([d.text for d in documents[:2000]], -(-size // whole))):
            for document in documents:
                if written >= size:
                    break
                text = document.text.translate(table) if copy else document.text
                written += len(text.encode())
                line = {"id": f"{copy}/{document.id}", "source": document.source, "text": text}
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
    return written


_HEAD = """\
<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="zh">
  <siteinfo>
    <sitename>Wikipedia</sitename>
    <dbname>zhwiki</dbname>
    <base>https://zh.wikipedia.org/wiki/Wikipedia:Home</base>
    <namespaces>
      <namespace key="0" case="first-letter" />
      <namespace key="10" case="first-letter">Template</namespace>
    </namespaces>
  </siteinfo>
"""
_PAGE = """\
  <page>
    <title>{title}</title>
    <ns>0</ns>
    <id>{id}</id>
    <revision>
      <id>1</id>
      <model>wikitext</model>
      <text xml:space="preserve">{text}</text>
    </revision>
  </page>
"""


def _page(page: Page, number: int) -> str:
    """The page as an export has it; its sentences end in the copy's number, so that no two copies agree."""
    text = f"第{number}次。\n\n" + page.text.replace("。", f"{number}。") if number else page.text
    return _PAGE.format(title=f"{escape(page.title)} {number}", id=f"{number}{page.id}", text=escape(text))


def repeat_wiki(source: Path, target: Path, size: int) -> int:
    """Write the article pages of an export over and over, changed, until ``target`` has ``size`` bytes.

    Returns the bytes written.
    """
    chunks = chunks_of(source)
    pages = [p for p in read_pages(chunks, source) if p.namespace == "0" and not p.redirect]
    if not pages:
        raise UserError(f"{source} holds no article; give a MediaWiki export with --wiki")
    written, number = 0, 0
    with atomic_file(target) as partial, open(partial, "w", encoding="utf-8") as out:
        written += out.write(_HEAD)
        while written < size:
            for page in pages:
                written += len(part := _page(page, number).encode())
                out.write(part.decode())
            number += 1
        out.write("</mediawiki>\n")
    return target.stat().st_size
