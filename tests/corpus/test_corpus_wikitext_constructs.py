"""Wikitext, construct by construct: inputs and right outputs written by hand (cases 8 to 11)."""

import pytest

from corpus.formulas import formula_text
from corpus.script import converter
from corpus.wiki.wikitext import convert_unprotected, page_script, wikitext_to_text


@pytest.mark.parametrize(
    ("wikitext", "hans", "hant"),
    [
        ("-{zh:甲;zh-hans:乙;zh-hant:丙}-", "乙", "丙"),
        ("-{zh:甲;zh-hk:乙}-", "甲", "乙"),  # zh is what all variants fall back to
        ("-{zh-hk:甲}-", "甲", "甲"),
        ("-{ zh-cn : 甲 ; zh-tw : 乙 ; }-", "甲", "乙"),
        ("-{\nzh-cn:甲;\nzh-tw:乙;\n}-", "甲", "乙"),
        ("-{ZH-CN:甲;ZH-TW:乙}-", "甲", "乙"),
        (
            "-{zh-cn:甲&nbsp;1;zh-tw:乙&nbsp;2}-",
            "甲\u00a01",
            "乙\u00a02",
        ),  # an entity's semicolon divides nothing
        ("-{zh-cn:http://a.example;zh-tw:乙}-", "http://a.example", "乙"),
        ("-{zh-hans:;zh-hant:的}-", "", "的"),  # one side has no text
        ("-{R|甲}-", "甲", "甲"),
        ("-{zh;zh-hans;zh-hant|甲}-", "甲", "甲"),
        ("-{zh-hans|甲}-", "甲", "甲"),
        ("-{|甲}-", "甲", "甲"),
        ("-{}-甲", "甲", "甲"),
        ("-{H|甲=>zh-cn:乙}-丙", "丙", "丙"),
        ("-{甲=>zh-cn:乙;丙=>zh-tw:丁}-", "乙", "丁"),
        ("-{T|甲}--{-|zh-cn:乙}-丙-{D|zh-cn:甲;zh-tw:乙}--{N|zh}-", "丙", "丙"),
        ("-{ A ; H |zh-cn:甲}-乙", "乙", "乙"),
        ("[[甲|-{zh-cn:乙;zh-tw:丙}-]]", "乙", "丙"),
        ("[[-{甲}-|乙]][[-{丙}-]]", "乙丙", "乙丙"),
        ("{{nowrap|-{zh-cn:甲;zh-tw:乙}-}}", "甲", "乙"),
        ("-{zh-cn:{{nowrap|甲}};zh-tw:[[乙|丙]]'''丁'''<ref>戊</ref>}-", "甲", "丙丁"),
        ("-{zh-cn:-{zh-hans:甲;zh-hant:乙}-;zh-tw:丙}-", "甲", "丙"),
        ("{|\n|-{zh-cn:甲。;zh-tw:乙。}-\n|}", "甲。", "乙。"),
        ("== -{zh-cn:甲;zh-tw:乙}- ==\n丙", "甲\n丙", "乙\n丙"),
        ("Rh-{{nowrap|A}}", "Rh-A", "Rh-A"),  # a dash before a template
        ("甲}-乙", "甲}-乙", "甲}-乙"),
        ("-{甲\n\n乙", "-{甲\n\n乙", "-{甲\n\n乙"),
    ],
)
def test_variants(wikitext, hans, hant):
    """Case 8: all forms of language variants, for each script."""
    assert wikitext_to_text(wikitext, script="hans") == hans
    assert wikitext_to_text(wikitext, script="hant") == hant


def test_variant_follows_the_script_of_most_of_the_page():
    """Case 8: the side of the page's own script, also where the page mixes both."""
    side = "-{zh-hans:软件;zh-hant:軟體}-"
    assert wikitext_to_text(f"這個{side}為傳輸層設計，缩写") == "這個軟體為傳輸層設計，缩写"
    assert wikitext_to_text(f"这个{side}为传输层设计，縮寫") == "这个软件为传输层设计，縮寫"
    assert page_script("{{noteTA|1=zh-hans:软件设计;zh-hant:軟體}}這") == "hant"


def test_variants_are_kept_from_conversion():
    """Case 8: what an editor fixed stays as it is, and all else is converted."""
    convert = converter("t2s")
    text = wikitext_to_text("-{乾}-隆與乾燥，-{zh-hans:软件;zh-hant:軟體}-，-{於}-", convert="t2s")
    assert convert_unprotected(text, convert) == "乾隆与干燥，软件，於"
    assert convert_unprotected("甲\ufdd0乙", str) == "甲乙"  # half of a pair


@pytest.mark.parametrize(
    ("wikitext", "text"),
    [
        ("{{lang|en|Apple}}{{lang-ja|りんご}}{{langx|fr|Pomme}}{{transl|ja|ringo}}", "AppleりんごPommeringo"),
        ("{{lang-la|1=b}}{{lang-de|text=c}}", "bc"),
        ("{{nowrap|甲}}{{small|乙}}{{color|red|丙}}{{abbr|丁|戊}}{{tooltip|己|庚}}", "甲乙丙丁己"),
        ("{{ruby|漢字|かんじ}}{{ruby-ja|東京|とうきょう}}{{jpn|j=東京|rm=Tōkyō}}", "漢字東京東京"),
        ("{{link-en|甲|A}}{{link-ja|乙|B|丙}}{{le|丁|D}}{{le|戊|E|己}}", "甲丙丁己"),
        ("{{tsl|en|A|甲}}{{tsl|en|A|甲|乙}}{{Internal link helper/en|丙|C}}", "甲乙丙"),
        ("{{quote|甲乙。}}{{cquote|text=丙丁。|戊}}{{Quotation|1=己。}}", "甲乙。丙丁。己。"),
        ("'''甲'''{{bd|1900年||1950年}}是", "甲（1900年－1950年）是"),
        ("'''甲'''{{bd|1900年|1950年}}是", "甲（1900年－1950年）是"),
        ("'''甲'''{{bd|1900年|1月1日}}是", "甲（1900年1月1日－）是"),
        ("{{zh|s=甲|t=乙}}", "甲"),
        ("重{{convert|5|kg|lb}}，长{{convert|5|to|10|km|mi|abbr=on}}", "重5kg，长5–10km"),
        ("{{frac|1|2}}、{{frac|3}}、{{frac|2|1|2}}", "1/2、1/3、2 1/2"),
        ("{{val|1.5|e=6|u=kg}}、{{e|3}}、{{formatnum:12345}}", "1.5×10^6 kg、×10³、12345"),
        ("{{chem|H|2|O}}、{{chem2|CO2}}、{{math|x}}、m{{sup|2}}、a{{sub|1}}", "H2O、CO2、x、m²、a1"),
        ("{{US$|5}}、{{JPY|100}}、{{NT$|3}}", "US$5、¥100、NT$3"),
        ("甲{{·}}乙{{snd}}丙{{nbsp}}丁{{!}}戊{{=}}己", "甲·乙 – 丙 丁|戊=己"),
        ("甲{{br}}乙", "甲\n乙"),
        ("{{hlist|甲|乙}}", "甲、乙"),
        ("{{ubl|甲|乙}}", "甲\n乙"),
        ("{{plainlist|\n* 甲\n* 乙\n}}", "甲\n乙"),
        ("{{columns-list|colwidth=20em|\n* 甲\n* 乙\n}}", "甲\n乙"),
        ("{{hidden|甲|乙丙。}}", "乙丙。"),
        ("{{Episode list|Title=甲|ShortSummary=乙丙。}}", "乙丙。"),
        ("{{截至|2010年}}有", "截至2010年有"),
        ("点「{{int:save}}」", "点「save」"),
        ("{{PAGENAME}}{{FULLPAGENAME}}{{lc:ABC}}", "题题ABC"),
        ("{{tl|cite}}{{nihongo|甲|乙|ko}}", "cite甲"),
        ("{{nowrap|{{lang|en|{{small|a}}}}（{{lang-de|b}}）}}", "a（b）"),
        ("{{NowRap|甲}}{{ nowrap |乙}}{{nowrap\n|丙\n}}", "甲乙丙"),
    ],
)
def test_templates_that_carry_text(wikitext, text):
    assert wikitext_to_text(wikitext, title="题") == text


@pytest.mark.parametrize(
    "wikitext",
    [
        "{{noteTA|T=zh-hans:甲;zh-hant:乙|1=zh-cn:丙;zh-tw:丁}}",
        "{{main|甲}}",
        "{{see also|甲|乙}}",
        "{{cite web|url=http://a.example|title=甲}}",
        "{{Infobox|a=甲\n|b={{lang|en|c}}\n|d=[[e|f]]}}",
        "{{reflist|2}}",
        "{{IPA|x}}",
        "{{fact|time=2010}}",
        "{{#if:甲|乙}}",
        "{{#tag:ref|甲}}",
        "{{DEFAULTSORT:甲}}",
        "{{efn|甲。}}",
        "{{DISPLAYTITLE:甲}}",
        "{{flagicon|USA}}",
        "{{coord|1|2}}",
        "__TOC__",
        "__目录__",
        "{{{1}}}",
        "{{bd}}",
        "{{USD}}",
        "{{convert}}",
        "{{}}",
        "{{ }}",
        "{{|}}",
    ],
)
def test_templates_that_go(wikitext):
    """Notices, boxes, sources, notes and links above a section are no text of the article."""
    assert wikitext_to_text(wikitext, title="题") == ""
    assert wikitext_to_text(f"甲{wikitext}乙", title="题") == "甲乙"


@pytest.mark.parametrize(
    ("wikitext", "text"),
    [
        ("{| class=a\n! 年 !! 事\n|-\n| 1990 || 甲乙\n|}", ""),
        (
            '{| class=a\n! 年 !! 事\n|-\n| 1990 || align=left | 甲乙。丙\n|-\n| style="a" | 1991\n| 丁。\n|}',
            "甲乙。丙\n丁。",
        ),
        ("{|\n|\n# 甲。\n# 乙\n|}", "甲。\n乙"),
        ("{|\n|甲\n{|\n|乙。\n|}\n|丙。\n|}", "甲\n\n乙。\n\n丙。"),
        ("{|\n|+ 甲\n|-\n|{{nowrap|乙。}}[[丙|丁]]<ref>{{cite|x}}</ref>\n|}戊", "乙。丁\n戊"),
        ("<table><tr><th>年</th><td>甲乙。</td><td>丙</td></tr></table>", "甲乙。"),
        (":{|\n|甲\n|}\n乙", "乙"),
        ("{{t|a={|\n|b\n|}\n}}乙", "乙"),
    ],
)
def test_tables(wikitext, text):
    """Sentences stay, each cell from a line of its own; names and numbers go."""
    assert wikitext_to_text(wikitext) == text


@pytest.mark.parametrize(
    ("wikitext", "text"),
    [
        ("[[File:a.jpg|thumb|甲乙。]]丙", "甲乙。\n丙"),
        ("[[File:a.jpg|thumb|甲[[乙|丙]]丁{{small|戊}}。]]己", "甲丙丁戊。\n己"),
        ("[[File:a.jpg|thumb|甲乙]]丙[[File:a.svg|20px]]丁", "丙丁"),
        ("[[File:a.jpg|thumb|alt=甲乙。]]丙", "丙"),
        ("[[Category:甲。|乙。]]丙", "丙"),
        ("甲<gallery>\nFile:a.jpg|乙。\n</gallery>丙", "甲丙"),
    ],
)
def test_captions(wikitext, text):
    """A caption stays where it is a sentence; galleries go."""
    assert wikitext_to_text(wikitext) == text


@pytest.mark.parametrize(
    ("wikitext", "text"),
    [
        (
            "甲<ref name=a>乙</ref>，<ref name=a />丙<ref group=注>{{cite web|t={{lang|en|b}}}}</ref>。",
            "甲，丙。",
        ),
        ("甲<ref>[[乙|丙]]，''丁''。\n戊</ref>己<references group=\"注\"/>", "甲己"),
        ("甲<ref name=\"a/b\">乙</ref>丙<ref name='c d'/>丁", "甲丙丁"),
        ("甲<references>\n<ref name=a>乙</ref>\n</references>丙", "甲\n\n丙"),
        ("甲{{r|a}}{{sfn|B|1990}}{{refn|乙<ref>丙</ref>}}。", "甲。"),
        ("甲，<ref>a</ref>、乙；<ref>b</ref>。丙", "甲，乙。丙"),
        ("{{x}}，甲。<ref>a</ref>，乙", "甲。乙"),
        ("甲（<ref>a</ref>、{{x}}）乙《{{x}}》", "甲乙"),
        ("又称 {{x}} 或 {{x}} 的", "又称或的"),
    ],
)
def test_references_leave_no_trace(wikitext, text):
    assert wikitext_to_text(wikitext) == text


@pytest.mark.parametrize(
    ("wikitext", "text"),
    [
        ("边长为<math>a</math>、<math>b</math>，则<math>a^2+b^2=c^2</math>。", "边长为a、b，则a²+b²=c²。"),
        ("<chem>H2O</chem>、<ce>CO2</ce>", "H2O、CO2"),
        ("<math>\\{1,2\\}</math>{{nowrap|<math>x=1</math>}}", "{1,2}x=1"),
        ("<math>f''(x) &lt; |x|</math>", "f''(x) < |x|"),
        ("10<sup>6</sup>、m<sup>2</sup>、H<sub>2</sub>O、19<sup>th</sup>", "10^6、m²、H2O、19th"),
        ("<nowiki>[[甲]] {{乙}} ''丙'' &amp; <ref></nowiki>", "[[甲]] {{乙}} ''丙'' & <ref>"),
        ("''<nowiki/>'甲", "'甲"),
        ("<poem>\n甲\n：乙\n</poem>", "甲\n：乙"),
        ("<ruby>漢<rp>（</rp><rt>かん</rt><rp>）</rp></ruby>字", "漢字"),
        ("甲<br>乙<BR />丙<hr>丁", "甲\n乙\n丙丁"),
        ("<center>甲</center><u>乙</u><span style='a'>丙</span><s>丁</s>", "甲乙丙丁"),
        ("* 甲\n** 乙\n*** 丙\n*# 丁\n#: 戊", "甲\n乙\n丙\n丁\n戊"),
        (";甲：乙\n:丙\n::丁\n;戊:己", "甲：乙\n丙\n丁\n戊:己"),
        ("甲[[fr:A]][[:fr:B]][[wikt:乙]][[:Category:丙|丁]]", "甲fr:Bwikt:乙丁"),
        (
            "[https://a.example/x 甲] [https://b.example] https://c.example [//d.example 乙]",
            "甲 https://c.example 乙",
        ),
        ("甲<!-- 乙 -->丙<!-- -- > -->丁", "甲丙丁"),
        ("&lt;br&gt;&amp;lt;&quot;&#x4e00;&#19968;&eacute;&unknown;", '&lt;"一一é&unknown;'),
        ("<blockquote>甲</blockquote>乙", "甲\n乙"),
        ("<imagemap>\nFile:a.jpg\n</imagemap>甲<timeline>\na\n</timeline>", "甲"),
    ],
)
def test_elements_and_lines(wikitext, text):
    assert wikitext_to_text(wikitext) == text


@pytest.mark.parametrize(
    ("tex", "text"),
    [
        ("E = mc^2", "E = mc²"),
        (r"\frac{a+b}{2} \leq x_1", "(a+b)/2 ≤ x1"),
        (r"a_{n+1}=\sqrt{2} \cdot 10^{-6}", "a_(n+1)=√2 · 10^-6"),
        (r"\sin\theta=\left(\tfrac12\right)", "sin θ=(1/2)"),
        (r"\mathrm{S}\!\!\!\Vert", "S‖"),
        (r"\{x \mid x \in \mathbb{R}\}", "{x | x ∈ R}"),
        (r"90^\circ", "90°"),
        (r"\begin{matrix}1&2\end{matrix}", ""),
        (r"\int_0^1 x\,dx", "∫_0^1 xdx"),
        (r"\sum_{i=1}^{n} i^2", "∑_(i=1)^n i²"),
        (r"\log_{10}100=2", "log_10 100=2"),
        ("1010_2=10_{10}", "1010_2=10_10"),
        (r"2^nk=\sqrt[3]{x+1}", "2^n k=(x+1)^(1/3)"),
        ("{a", ""),
        ("a}", ""),
        ("x^", ""),
        ("\\", ""),
        ("{" * 199, ""),
        ("x" * 401, ""),
    ],
)
def test_formulas(tex, text):
    """What a line of text can show; anything else gives nothing."""
    assert formula_text(tex) == text
