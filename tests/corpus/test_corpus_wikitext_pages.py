"""Nine real pages: no mark stays, no bracket is empty, every sentence of the prose is there."""

import bz2
import re

import pytest

from corpus.inputs.formats.mediawiki import read_pages
from corpus.wiki.wikitext import page_script, wikitext_to_text

LEFT = re.compile(r"\{\{|\}\}|\[\[|\]\]|-\{|\}-|</?ref|<br|<div|\{\||\|\}|''|\x00|&[a-z]+;|__[A-Z]+__")
TRACES = re.compile(
    r"[（(「《][，；、：\s]*[）)」》]|[，、；][，、；。]|。，|^[，、；。]|（[，、；]|[，、；]）", re.MULTILINE
)


@pytest.fixture(scope="module")
def pages(real_data):
    path = real_data / "wiki" / "zhwiki-sample-pages-articles.xml.bz2"
    with bz2.open(path) as file:
        return {page.title: page.text for page in read_pages(iter(lambda: file.read(1 << 16), b""), path)}


def prose_of(wikitext: str) -> str:
    """The source's prose, by other means than ours: innermost marks go first, until none is left."""
    text = re.sub(r"<!--.*?-->|<ref[^>/]*/>|<pre.*?</pre>|<math>.*?</math>", "", wikitext, flags=re.DOTALL)
    for _ in range(6):
        text = re.sub(r"-\{(?!zh|H)([^{}:|]*)\}-", r"\1", text)
        text = re.sub(r"\{\{lang(?:-\w+)?\|(?:en\|)?([^{}|]*)\}\}", r"\1", text)
        text = re.sub(
            r"\{\{(?:tsl|link-en|int:)[^{}]*\}\}|-\{[^{}]*\}-", "※", text
        )  # what these show is left open
        text = re.sub(r"\{\{[^{}]*\}\}|\[\[(?:File|Category|category):[^\[\]]*\]\]", "", text)
        text = re.sub(r"\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]", r"\1", text)
    return re.sub(r"<ref.*?</ref>|'''?", "", text, flags=re.DOTALL)


@pytest.mark.real
def test_nine_pages(pages):
    assert len(pages) == 9
    sentences = 0
    for title, wikitext in pages.items():
        text = wikitext_to_text(wikitext, title=title)
        assert not (found := LEFT.search(text)), (title, found)
        assert not (found := TRACES.search(text)), (title, found)
        prose = prose_of(wikitext)
        for sentence in re.findall(r"[^。\n|]+。", prose):
            if "※" not in sentence:
                sentence = sentence.strip(" *#;:")
                assert text.count(sentence) == prose.count(sentence), (title, sentence)
                sentences += 1
        long_lines = [line for line in text.split("\n") if len(line) > 12]
        assert len(long_lines) == len(set(long_lines)), title
    assert sentences > 60


@pytest.mark.real
def test_nine_pages_use_their_own_variant(pages):
    """Case 8: the QUIC page is mostly traditional, with simplified words in between."""
    text = wikitext_to_text(pages["QUIC"], title="QUIC")
    assert page_script(pages["QUIC"]) == "hant"
    assert page_script(pages["三星Knox"]) == "hans"
    assert "快速UDP網路連線（Quick UDP Internet Connections，" in text
    assert "串流控制傳輸協定" in text


@pytest.mark.real
def test_nine_pages_keep_lists_and_sentences_of_tables(pages):
    coins = wikitext_to_text(pages["$ (消歧义)"]).split("\n")
    assert len(coins) > 25
    assert "潘加（paʻanga）：湯加貨幣" in coins
    assert "$：1971年美國電影" in coins
    bets = wikitext_to_text(pages["三T"])
    assert "從自選任何馬匹編號中每關選出3匹不同馬匹編號。" in bets
    assert "投注金額" in bets
    assert "派彩155,578,703元。" in bets.split("\n")
    assert "wikitable" not in bets
