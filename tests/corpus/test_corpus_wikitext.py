"""Wikitext: cases 8, 9 and 11, and each construct."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.wiki.brackets import remove_empty_brackets
from corpus.wiki.wikitext import wikitext_to_text


@pytest.mark.parametrize(
    ("wikitext", "text"),
    [
        ("-{zh-hans:计算机; zh-hant:電腦;}-", "计算机"),
        ("-{zh-cn:软件; zh-tw:軟體}-", "软件"),
        ("-{于}-", "于"),
        ("-{H|zh-cn:内存;zh-tw:記憶體}-", ""),
        ("-{T|zh:甲;zh-hant:乙}-", ""),
        ("-{A|zh-cn:甲; zh-tw:乙}-", "甲"),
        ("-{zh-cn:-{甲}-;zh-tw:乙}-", "甲"),
        ("-{abc", "-{abc"),
    ],
)
def test_variants_case_8(wikitext, text):
    """Case 8: the inputs and outputs as listed there, target simplified."""
    assert wikitext_to_text(wikitext) == text


@pytest.mark.parametrize(
    ("wikitext", "text"),
    [
        ("-{zh-cn:软件; zh-tw:軟體}-", "軟體"),
        ("-{zh-hans:计算机; zh-hant:電腦;}-", "電腦"),
        ("-{zh-hk:甲;zh-mo:乙;zh-cn:丙}-", "甲"),
        ("-{zh-cn:丙}-", "丙"),  # no side for this script: the first one
        ("-{zh;zh-hans;zh-hant;|某}-", "某"),
        ("-{R|原文}-與-{|原文}-", "原文與原文"),
        ("-{zh-tw:[[甲|乙]]{{lang|en|x&nbsp;y}};zh-cn:丙}-", "乙x\u00a0y"),
        ("前-{未完\n\n== 節 ==\n後", "前-{未完\n\n節\n後"),
    ],
)
def test_variants_traditional(wikitext, text):
    """Case 8, target traditional: zh-hant, zh-tw, zh-hk, zh-mo, zh in this order."""
    assert wikitext_to_text(wikitext, script="hant") == text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("甲（，；）乙（ ）丙（1）", "甲乙丙（1）"),
        ("甲（乙（））", "甲（乙）"),
        (":-)", ":-)"),
        ("甲（，《》）「」乙", "甲乙"),
        ("main()与int[]", "main()与int[]"),
        ("「……」和（？）", "「……」和（？）"),
        ("（甲)（）", "（甲)"),
        ("（" * 3 + "）" * 2, "（"),
    ],
)
def test_empty_brackets_case_9(before, after):
    """Case 9: the first three are listed there."""
    assert remove_empty_brackets(before) == after


@pytest.mark.parametrize(
    ("wikitext", "text"),
    [
        ("A&amp;B &lt;ref&gt;", "A&B"),
        ('甲<ref name="x"/>乙', "甲乙"),
        ("甲<ref>[[丙]]{{cite|a}}</ref>乙", "甲乙"),
        ("甲<REF name=a>丙</Ref >乙", "甲乙"),
        ("甲<ref>未完\n乙<ref>丙</ref>丁", "甲未完\n乙丁"),  # an unclosed reference loses its mark only
        ("&amp;lt;甲&amp;nbsp;", "&lt;甲&nbsp;"),  # unescaped once, not twice
        ("&#91;&#91;甲]]", "[[甲"),
        ("* 甲\n# 乙\n; 丙\n: 丁", "甲\n乙\n丙\n丁"),
        ("<div>甲</div><small>乙</small>", "甲乙"),
    ],
)
def test_references_and_entities_case_11(wikitext, text):
    """Case 11: entities once, then references; list lines and small or div elements keep their text."""
    assert wikitext_to_text(wikitext) == text


@pytest.mark.parametrize(
    ("wikitext", "text"),
    [
        ("[[甲]]、[[乙|丙]]和[[:Category:丁]]", "甲、丙和Category:丁"),
        ("[[File:a.jpg|thumb|甲[[乙|丙]]{{x}}丁]]戊", "戊"),
        ("[[文件:a.jpg]][[檔案:b.jpg|缩]][[圖像:c]]甲[[分类:乙]][[分類:丙|x]][[category:丁]]", "甲"),
        ("甲[[en:Foo]][[zh-yue:乙]]", "甲"),
        ("[[Re:从零]]", "Re:从零"),
        ("[[张三_(演员)|]]", "张三"),
        ("[http://a.example 甲 [[乙]]]丙[https://b.example]", "甲 乙丙"),
        ("数组[1]", "数组[1]"),
        ("'''甲'''是''乙''，'''''丙'''''，O'Neil", "甲是乙，丙，O'Neil"),
        ("甲<!-- [[乙 {{ -->丙<!-- 未完", "甲丙 未完"),
        ("甲<nowiki>[[乙]]</nowiki>", "甲[[乙]]"),
        ("甲<math>x^2</math><code>a</code><gallery>\nb.jpg|c\n</gallery>乙<br/>丙", "甲x²a乙\n丙"),
        ("<poem>\n床前\n明月\n</poem>", "床前\n明月"),
        ("{{Infobox|a={{b|c}}|d=[[e]]}}甲{{noteTA|1=x}}", "甲"),
        ("{{lang|en|Apple}}与{{lang-fr|Pomme}}、{{nowrap|甲{{small|乙}}}}", "Apple与Pomme、甲乙"),
        ("{{link-en|甲|A|乙}}{{le|丙|C}}{{tsl|en|D|丁|戊}}{{tsl|en|E|己}}", "乙丙戊己"),
        ("'''张三'''{{bd|1893年|12月26日|1976年|9月9日}}", "张三（1893年12月26日－1976年9月9日）"),
        ("{{{1|甲}}}乙{{PAGENAME}}", "甲乙题"),
        ("{{未完|甲\n|参数=1\n\n乙", "未完|甲\n\n乙"),
        ("甲\n{| class=x\n|-\n! a\n{|\n|b\n|}\n|}\n乙", "甲\n\n乙"),
        ("甲{{t|\n{|\n|x\n|}}}乙", "甲乙"),
        ("<table><tr><td>甲<table></table></td></tr></table>乙", "乙"),
        ("甲\n{|\n|未完\n== 节 ==\n乙", "甲\n\n\n节\n乙".replace("\n\n\n", "\n\n")),
        ("== 一 ==\n=== 二 ===\n__TOC__ __NOTOC__\n----\n甲", "一\n二\n\n甲"),
        ("; 词 : 义", "词\n义"),
        ("（{{lang-la|}}，{{IPA|x}}）甲", "甲"),
        ("a | b }} c ]] d", "a | b  c  d"),
    ],
)
def test_constructs(wikitext, text):
    assert wikitext_to_text(wikitext, title="题") == text


@pytest.mark.parametrize(
    ("wikitext", "text"),
    [
        ("甲，&lt;ref&gt; 这样写。\n\n乙<ref>丙</ref>丁", "甲，这样写。\n\n乙丁"),
        ("甲<ref>乙\n== 节 ==\n丙</ref>丁", "甲乙\n节\n丙丁"),
        ("甲<math>乙\n\n丙<math>x</math>丁", "甲乙\n\n丙x丁"),
        ("甲<gallery>乙\n\n丙<gallery>\na.jpg\n</gallery>丁", "甲乙\n\n丙丁"),
        ("甲<code>乙\n\n丙<pre>丁", "甲乙\n\n丙丁"),
        ("甲<nowiki>[[乙]]\n丙<nowiki>[[丁]]</nowiki>", "甲乙\n丙[[丁]]"),
    ],
)
def test_unclosed_elements_keep_text(wikitext, text):
    assert wikitext_to_text(wikitext) == text


@pytest.mark.parametrize(
    ("wikitext", "text"),
    [
        ("用 <code>a &amp;&amp; b</code> 连接", "用 a && b 连接"),
        ("按<kbd>Ctrl</kbd>，<var>x</var>和<tt>y</tt>", "按Ctrl，x和y"),
        ('用<syntaxhighlight lang="c" inline>a[0]</syntaxhighlight>取', "用a[0]取"),
        ("甲\n<code>\na\nb\n</code>\n<source lang=c>\nc\n</source>\n<pre>d</pre>\n乙", "甲\n\n乙"),
    ],
)
def test_code(wikitext, text):
    """Code within a line is part of the sentence, a block of it is not."""
    assert wikitext_to_text(wikitext) == text


@pytest.mark.parametrize(
    ("wikitext", "text"),
    [
        ("分数 <math>\\matrix x</math>，称为", "分数，称为"),
        ("其中 <math>\\matrix x</math> 是密度", "其中是密度"),
        ("边长为 <ref>[[a]]</ref>、{{x}}，则", "边长为，则"),
        ("有定理：<math>\\matrix a</math>。当", "有定理。当"),
        ("如下：<math>\\matrix a</math>\n乙", "如下：\n乙"),
        ("用 Word <ref>x</ref> and Excel <ref>x</ref>, 甲{{x}} .NET", "用 Word and Excel, 甲 .NET"),
        ("甲，{{x}}乙{{x}}、丙", "甲，乙、丙"),
        ("{{x}}，甲", "甲"),
        ("甲  乙，，丙", "甲  乙，，丙"),  # nothing was dropped here
        ("（{{lang-la|}}，Lanzhou）", "（Lanzhou）"),
        ("（Helium，{{IPA|x}}）", "（Helium）"),
        ("（{{lang-de|}}；1919年）", "（1919年）"),
        ("（甲，{{x}}；乙）（学名：{{x}}）", "（甲；乙）（学名）"),
        ("（{{lang|en|A}}，{{bd|1656年|1742年}}）", "（A，1656年－1742年）"),
        ("（A，{{small|{{bd|1656年||1742年}}}}）", "（A，1656年－1742年）"),
        ("（……）（？）（，甲）{{x}}", "（……）（？）（，甲）"),
    ],
)
def test_dropped_markup_leaves_no_trace(wikitext, text):
    assert wikitext_to_text(wikitext) == text


@pytest.mark.parametrize(
    ("wikitext", "text"),
    [
        ("甲\n== 参考文献 ==\n{{reflist}}\n== 外部链接 ==\n* {{official|x}}\n[[Category:a]]", "甲"),
        ("== 一 ==\n=== 二 ===\n== 三 ==\n甲", "三\n甲"),
        ("== 一 ==\n=== 二 ===\n甲\n=== 三 ===\n== 四 ==", "一\n二\n甲"),
        ("== 一 ==\n==== 二 ====\n=== 三 ===\n乙", "一\n三\n乙"),
        ("== 一 ==\n{|\n|甲\n|}", ""),
        ("== 参见 ==\n* [[甲]]", "参见\n甲"),
        ("=\n==\n甲=乙", "=\n==\n甲=乙"),
    ],
)
def test_headings_without_text(wikitext, text):
    assert wikitext_to_text(wikitext) == text


_PROSE = st.text("天地玄黄宇宙洪荒日月盈昃abc123，。；：！？、…—“”「」（）《》", min_size=1, max_size=40)


@given(st.lists(_PROSE, min_size=1, max_size=5))
def test_plain_text_unchanged(lines):
    """Text without marks comes back as it was, but for empty brackets and lines that held nothing else."""
    text = "\n".join(lines)
    kept = [line for line in remove_empty_brackets(text).split("\n") if line]
    assert [line for line in wikitext_to_text(text).split("\n") if line] == kept
