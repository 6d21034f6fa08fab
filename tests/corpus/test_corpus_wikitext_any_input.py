"""Wikitext of any kind: nothing raises, no mark stays in what is well formed, time is linear."""

import re
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from corpus.wiki import wikitext
from corpus.wiki.wikitext import wikitext_to_text

LEFT = re.compile(r"\{\{|\}\}|\[\[|\]\]|-\{|\}-|</?ref|<nowiki|\n\{\||\n\|\}|\x00|\ufdd0")

_MARKUP = """{{ }} {{{ }}} [[ ]] [ ] -{ }- | : ; = zh-cn: H| <ref> </ref> <ref/> <nowiki> </nowiki> <!-- -->
<math> </math> <table> </table> <td> '' ''' &amp; &lt; http:// （ ） 《 》 甲 乙丙。
lang File: * # \\frac ^ _"""
_PIECES = st.sampled_from([*_MARKUP.split(), " ", "\n", "\n{|", "\n|}", "\n==", "\n|-"])


@given(st.lists(_PIECES, max_size=60).map("".join) | st.text(max_size=200))
def test_never_raises(text):
    for script in ("hans", "hant", None):
        assert isinstance(wikitext_to_text(text, script=script), str)
    assert "\x00" not in wikitext_to_text(text, convert="t2s")


# --- what is well formed --------------------------------------------------------------------------

_EDGES = """- ' = : ; * # _ n 2 。 甲。 a' 'a x- -x −3 1=2 en:甲 File:甲 http://a //a &amp; __NOTOC__ {{br}}
{{-}} {{'}} {{!}} {{PAGENAME}} {{unknown}} [[Category:甲]] -{}- <nowiki/> <ref/> <pre>{{</pre> <pre>}}</pre>
<source>[[</source> <score>}}</score>"""
_WORDS = st.text("天地玄黄宇宙洪荒abc12", min_size=1, max_size=6) | st.sampled_from(
    [*_EDGES.split(), "甲 ", " 甲", "<br />", "<ref name=a />", "<!-- {{ -->", "<score>{{ c</score>"]
)
_JOINED = ["，", "", "\n", " ", "-", "'"]
_CONSTRUCTS = """[[{}]]   [[甲|{}]]   [[{}|甲]]   [[甲 ({})|]]   [[甲#{}|{}]]   [[:Category:{}]]
[[Category:{}]]   [[分类:甲|{}]]   [[en:{}]]   [[File:a.jpg|thumb|{}]]   [[文件:a.jpg|alt={}|{}。]]
[https://a.example {}]   ({})   （{}）   '''{}'''   ''{}''
{{{{nowrap|{}}}}}   {{{{nowrap|1={}}}}}   {{{{nowrap|↵{}↵}}}}   {{{{lang|en|{}}}}}   {{{{lang-en|{}}}}}
{{{{quote|text={}|author=乙}}}}   {{{{ubl|{}|{}}}}}   {{{{bd|{}|1月|{}}}}}   {{{{hidden|甲|{}}}}}
{{{{sup|{}}}}}   {{{{unknown|a={}|乙}}}}   {{{{unknown↵|a={}↵|b={}↵}}}}
-{{{}}}-   -{{zh-hans:{};zh-hant:{}}}-   -{{A|zh-cn:{};zh-tw:乙}}-   -{{H|zh-cn:{};zh-tw:乙}}-
-{{zh-hans;zh-hant|{}}}-   -{{甲=>zh-cn:{}}}-
<ref>{}</ref>   <ref name=a>{}</ref>   <ref name="a" group='b'>↵{}</ref>   <sup>{}</sup>   <sub>{}</sub>
<small>{}</small>   <span style="a">{}</span>   <code>{}</code>   <pre>{}</pre>   <source lang=c>↵{}↵</source>
<gallery>↵a.jpg|{}↵</gallery>   <poem>↵{}↵</poem>   <table><tr><td>{}。</td></tr></table>
↵{{|class=a↵|-↵!{}↵|a=b|甲||乙。↵|}}↵   ↵{{|class=a↵|-↵|{}。↵|}}↵   ↵*{}↵   ↵:{}   ↵;{} : {}"""
_OTHERS = """<nowiki>{}</nowiki>   <math>{}</math>   <chem>{}</chem>   <source inline>{}</source>
<syntaxhighlight lang=c inline=1>{}</syntaxhighlight>   [{}]   {{{{{{1|{}}}}}}}"""  # may show or make marks


def _wikitext(constructs: str) -> st.SearchStrategy[str]:
    """Pages of nested constructs, three spaces or a line apart, where ``↵`` is a line break."""
    formats = st.sampled_from([part.replace("↵", "\n") for part in re.split(r" {3}|\n", constructs)])
    nested = st.recursive(
        _WORDS,
        lambda inner: (
            st.builds(str.format, formats, inner, inner)
            | st.builds(str.join, st.sampled_from(_JOINED), st.lists(inner, min_size=2, max_size=3))
        ),
        max_leaves=12,
    )
    headings = nested.filter(lambda text: "\n" not in text).map("== {} ==".format)
    return st.lists(nested | headings, min_size=1, max_size=3).map("\n".join)


@given(_wikitext(_CONSTRUCTS))
def test_no_mark_stays_of_well_formed_text(text):
    for convert in ("none", "t2s"):
        plain = wikitext.convert_unprotected(wikitext_to_text(text, convert=convert), str)
        assert not LEFT.search(plain), plain


def scanned(text: str, **options: str) -> str:
    """The text without the first replacements."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wikitext, "_simple_marks", lambda text, *_: text)
        return wikitext_to_text(text, **options)


@given(_wikitext(f"{_CONSTRUCTS}\n{_OTHERS}"))
@example("-{A|zh-cn:甲\n=;zh-tw:乙}-")
@example("甲-{{{1|甲}}}-{zh-hans:甲;zh-hant:乙}-")
@example("[[[[[分类:甲|甲]]]|甲]]")
@example("[[[[甲|甲]]|甲]]")
@example("甲\n{{br}}{|\n|乙。\n|}")
@example("甲\n-{乙\n}-{|\n|乙。\n|}")
@example("甲\n{{clear}}== 乙 ==\n丙")
@example("[http://a 甲\n[[乙|=丙]]=\n丁]戊")
@example("-{甲}[[乙|-丙]]丁}-")
@example("[[[[[甲]]]|乙]]")
@example("-{甲}{{nowrap|-乙}}丙}-")
@example("<ref>\n=</ref> {{unknown|a=\n=|乙}}")
@example("[{{nowrap|//a}} 甲]")
@example("甲-{{zh-hans:乙;zh-hant:丙}}-{{nowrap|-}}{{{1|乙}}}")
def test_first_replacements_change_no_result(text):
    """What is replaced before the scan is what the scan would have made of it."""
    for options in ({"script": "hans"}, {"script": "hant"}, {"convert": "t2s"}):
        assert wikitext_to_text(text, title="题", **options) == scanned(text, title="题", **options)


@pytest.mark.parametrize(
    ("text", "plain"),
    [  # each was read in two ways, or wrongly in both
        (
            "<ref name=a>\n{|class=a\n|-\n![[File:a.jpg|thumb|<ref name=a>1</ref>]]\n"
            "|a=b|甲||乙。\n|}\n</ref>",
            "",
        ),
        ("甲<ref>乙<ref>丙</ref>丁</ref>戊", "甲戊"),
        ("甲<ref>乙\n<ref>丙\n<ref name=a/></ref>丁</ref>戊<ref>己</ref>", "甲戊"),
        ("甲<ref>乙<ref>丙</ref>丁", "甲乙丁"),
        ("甲<gallery>\na.jpg\n<gallery>\nb.jpg|乙\n</gallery>丙</gallery>丁", "甲丁"),
        ("{{ubl|甲|__NOTOC__}}[[乙|丙__TOC__]]", "甲丙"),
        ("甲[[乙 ]]丙", "甲乙丙"),
        ("[[[甲|乙]]]", "[乙]"),
        ("[[[甲|//a]]]", "[//a]"),
        ("[[[[甲]]]]", "甲"),
        ("'[[甲|'乙']]'", "''乙''"),
        ("[[甲|x-]]{{{1|乙}}}", "x-乙"),
        ("-{甲{{nowrap|乙-}}{{{1|丙}}}}-", "甲乙-丙"),
        (
            "10<sup>{{nowrap|3}}</sup>，10<sup>[[甲|12]]</sup>，10<SUP>2</SUP>，<sup>甲</sup>",
            "10³，10^12，10²，甲",
        ),
        ("<code>甲{{unknown\n|a=1}}乙</code>", ""),
        ("<code>甲{{br}}乙</code>", "甲\n乙"),
        ("<code><nowiki></code></nowiki></code>", "</code>"),
        ("甲<pre>{{</pre>乙<pre>}}</pre>丙", "甲乙丙"),
        ("{{unknown|<source>}}</source>|甲}}乙", "乙"),
        ("甲<graph>{{</graph>乙<GRAPH>}}</GRAPH>丙", "甲乙丙"),
        ("<nowiki>{{bd|<nowiki/>|1月|<pre>{{</pre>}}</nowiki>", "{{bd|<nowiki/>|1月|<pre>{{</pre>}}"),
        ("<NOWIKI>[[甲]]</NOWIKI><Math>x^2</Math>", "[[甲]]x²"),
        ("-{zh-hans:<nowiki>-{</nowiki>;zh-hant:乙}-", "-{"),
        ("-{甲\n= 1}-乙", "甲\n= 1乙"),
        ("{|\n|甲。\n= 1 + 1。\n|}乙", "甲。\n= 1 + 1。\n乙"),
        ("甲<ref>{{unknown|\n==a}}乙</ref>", "甲"),
        ("-{zh-hans:甲&amp;;zh-hant:乙}-", "甲&"),
    ],
)
def test_inputs_that_were_misread(text, plain):
    assert wikitext_to_text(text, script="hans") == plain
    assert scanned(text, script="hans") == plain


# --- time -----------------------------------------------------------------------------------------

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
    "<ref>\n= =\n": "",
    "<pre>": "</pre>",
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


def _takes_less(text: str, limit: float) -> bool:
    """Three tries: what else the machine does can slow one, not make a slow one fast."""
    return any(_seconds(text) < limit for _ in range(3))


@pytest.mark.parametrize("mark", MARKS, ids=repr)
@pytest.mark.parametrize("inside", ["", "{{a|"], ids=repr)
def test_linear_time(mark, inside):
    """Eight times the marks take about eight times as long, not 64 times; open ones and closed ones."""
    for close in {"", MARKS[mark]}:
        small, large = (inside + mark * n + "甲" + close * n for n in (2_000, 16_000))
        least = min(_seconds(small), _seconds(small))
        assert _takes_less(large, 24 * max(least, 0.01))


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
            assert _takes_less(mark + filler * 20_000 + close, 1.5)
