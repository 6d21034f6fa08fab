"""Wikitext of any kind: nothing raises, no mark stays in what is well formed, time is linear."""

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus import wikitext
from corpus.wikitext import wikitext_to_text

LEFT = re.compile(r"\{\{|\}\}|\[\[|\]\]|-\{|\}-|</?ref|<nowiki|\n\{\||\n\|\}|'''|\x00|\ufdd0")

_MARKUP = """{{ }} {{{ }}} [[ ]] [ ] -{ }- | : ; = zh-cn: H| <ref> </ref> <ref/> <nowiki> </nowiki> <!-- -->
<math> </math> <table> </table> <td> '' ''' &amp; &lt; http:// （ ） 《 》 甲 乙丙。
lang File: * # \\frac ^ _"""
_PIECES = st.sampled_from([*_MARKUP.split(), " ", "\n", "\n{|", "\n|}", "\n==", "\n|-"])


@settings(max_examples=150, deadline=None)
@given(st.lists(_PIECES, max_size=60).map("".join) | st.text(max_size=200))
def test_never_raises(text):
    for script in ("hans", "hant", None):
        assert isinstance(wikitext_to_text(text, script=script), str)
    assert "\x00" not in wikitext_to_text(text, convert="t2s")


_WORDS = st.text("天地玄黄宇宙洪荒abc12", min_size=1, max_size=6)
_NESTED = st.recursive(
    _WORDS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("，".join),
        inner.map("[[甲|{}]]".format),
        inner.map("'''{}'''".format),
        inner.map("{{{{nowrap|{}}}}}".format),
        inner.map("{{{{unknown|a={}|乙}}}}".format),
        inner.map("[[File:a.jpg|thumb|{}]]".format),
        inner.map("-{{zh-hans:{};zh-hant:乙}}-".format),
        inner.map("-{{{}}}-".format),
        inner.map("<ref name=a>{}</ref>".format),
        inner.map("<small>{}</small>".format),
        inner.map("[https://a.example {}]".format),
        inner.map("（{}）".format),
        inner.map("\n{{|class=a\n|-\n!{}\n|a=b|甲||乙。\n|}}\n".format),
        inner.map("\n* {}\n".format),
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(_NESTED)
def test_no_mark_stays_of_well_formed_text(text):
    for convert in ("none", "t2s"):
        plain = wikitext.convert_unprotected(wikitext_to_text(text, convert=convert), str)
        assert not LEFT.search(plain), plain


@settings(max_examples=150, deadline=None)
@given(_NESTED)
def test_first_replacements_change_no_result(text):
    """What is replaced before the scan is what the scan would have made of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wikitext, "_simple_marks", lambda text, *_: text)
        scanned = wikitext_to_text(text, script="hans")
    assert wikitext_to_text(text, script="hans") == scanned


MARKS = {  # a mark that opens, and what closes it
    "{{": "}}",
    "{{{": "}}}",
    "[[": "]]",
    "-{": "}-",
    "<ref>": "</ref>",
    "{|": "|}",
    "\n{|": "\n|}",
    "'''": "'''",
    "{{nowrap|": "}}",
    "[[a|": "]]",
    "-{zh-cn:": "}-",
    "<table>": "</table>",
    "<table><td>。": "</table>",
    "<!--": "-->",
    "<math>": "</math>",
    "<nowiki>": "</nowiki>",
    "<source inline>": "",
    "<source inline ": "",
    "<ref name=a ": "/>",
    "<ref>\n==": "",
    "[http://": "]",
    "[http://a b": "]",
    "（": "）",
    "《": "》",
    "'": "",
    "=": "",
    "\n=": "",
    "&lt;": "",
    "<a ": ">",
    "，{{x}}": "",
    "<code>": "",
    "}}": "",
    "]]": "",
    "}-": "",
    "|": "",
    "-{;": "}-",
    "-{; ": "}-",
    "[[a:": "]]",
    "[[ ": "]]",
    "<sup>": "</sup>",
    "\\frac": "",
    "{{lang|": "}}",
    "\n* ": "",
    "\n; a : ": "",
    "__TOC_": "",
    "&": ";",
    "\n\n": "",
    "{{{{{": "}}}}}",
    "<poem>": "</poem>",
}


def _seconds(text: str) -> float:
    started = time.process_time()
    wikitext_to_text(text)
    return time.process_time() - started


@pytest.mark.parametrize("mark", MARKS, ids=repr)
@pytest.mark.parametrize("inside", ["", "{{a|"], ids=repr)
def test_linear_time(mark, inside):
    """Eight times the marks take about eight times as long, not 64 times; open ones and closed ones."""
    for close in {"", MARKS[mark]}:
        small, large = (inside + mark * n + "甲" + close * n for n in (2_000, 16_000))
        least = min(_seconds(small), _seconds(small))
        assert _seconds(large) < 24 * max(least, 0.01)


@pytest.mark.parametrize("filler", [" ", "a", "甲", "\n", "=", ";", "。", " inline", "a=b|", "||"], ids=repr)
def test_long_runs_take_linear_time(filler):
    """Quadratic patterns show on long runs after a mark that stays open."""
    for mark in (
        "-{;",
        "-{a|",
        "<ref ",
        "<source ",
        "[[",
        "{{",
        "\n{|",
        "[http://",
        "<sup>",
        "<math>",
        "&",
        "{{lang|",
    ):
        for close in ("", "}-", ">", "]]", "}}", "\n|}"):
            assert _seconds(mark + filler * 20_000 + close) < 1.5
