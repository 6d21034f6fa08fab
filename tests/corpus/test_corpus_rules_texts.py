"""What the rules make of lines that belong together and of whole texts (cases 15, 17)."""

import gzip
import json
import time
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from corpus.config import PRESETS
from corpus.rules import blocklist, order
from corpus.script import converter
from corpus.wiki.wikitext import convert_unprotected, wikitext_to_text
from provenance import UserError

CONFIG = PRESETS["web"]
BY_NAME = {rule.__name__: rule for rule in order.ALL_RULES}
ARTICLE = (
    "图书馆在河的北岸，从学校走过去要一刻钟。每到周末，孩子们就带着借书证来看书，有的坐在窗边，有的靠着书架。管理员说，"
    "这里的书虽然旧，但没有一本是白放的：每一本都有人借走过，又好好地还了回来。到了傍晚，灯一盏一盏地亮起来，河面上便有了光。"
)


def test_wrapped_lines_join_paragraphs_and_keep_items() -> None:
    full = (
        "為健全水利事業之發展並保障國民用水之權利及促進農工各業之繁榮起見特制定"  # 35 characters, 70 columns
    )
    text = "\r\n".join(
        [full, "  本法。", "一、" + full[2:], "    施行。", full, "  條文。", "二、" + full[2:], "    。"]
    )
    joined = BY_NAME["wrapped_lines"](text, CONFIG)
    assert joined.split("\n") == [
        full + "本法。",
        "一、" + full[2:] + "施行。",
        full + "條文。",
        "二、" + full[2:] + "。",
    ]


def test_wrapped_items_in_a_text_of_long_lines() -> None:
    """The history of a law is wrapped with a hanging indent, its articles are not."""
    full = "1.中華民國九十一年八月八日內政部台內地字第 0910071523 號令訂定發"  # 65 columns
    note = "  中華民國一百十二年七月二十七日行政院院臺規字第 1125014346 號公"
    article = "本辦法依臺灣地區與大陸地區人民關係條例第六十九條第二項規定訂定之。" * 3
    lines = [
        full[:-3] + " 206",
        "  73 號令發布",
        note,
        "  告改由「農業部」管轄",
        "2" + full[1:],
        "  16、20 條",
        "3.修正第 8",
    ]
    text = "\n".join([*lines, "  、18 條", *(article * n for n in range(1, 10))])
    joined = BY_NAME["wrapped_lines"](text, CONFIG)
    assert (
        joined.split("\n")
        == [
            full[:-3] + " 20673 號令發布",  # a broken number
            note + "告改由「農業部」管轄",
            "2" + full[1:] + "16、20 條",  # numbers, no item 16
            "3.修正第 8",  # too short to be wrapped
            "  、18 條",
            *(article * n for n in range(1, 10)),
        ]
    )
    code = "\n".join(
        ["1. 创建一个新的磁盘，不过这个磁盘我们稍后会删除并重建一个新的磁盘", "    sudo apt install x"] * 3
    )
    assert BY_NAME["wrapped_lines"](code, CONFIG) == code
    prose = "\n".join([f"1.{ARTICLE}\n  {ARTICLE * n}" for n in range(2, 6)])
    assert BY_NAME["wrapped_lines"](prose, CONFIG) == prose


def test_a_long_paragraph_of_wrapped_lines_takes_linear_time() -> None:
    """A file of 14 MB may be one document: a minute where each line copies what is joined before it."""
    began = time.process_time()
    joined = BY_NAME["wrapped_lines"](
        "\n".join(["為健全水利事業之發展並保障國民用水之權利及促進農工"] * 200_000), CONFIG
    )
    assert "\n" not in joined
    assert time.process_time() - began < 10


UNITS = (
    "（ ( 「」 《 http:// @ a.b < &# 1- | |a |字 ` * a@ -{ "
    "版权 微信：a www. _ \\ a. 。 · 138 [ ]( {{ # - = <a , "
    "， ： 责任编辑： （） 1.1 QQ：1 “ %E4 & &amp; 11010519491231002 010- $x \\( 的 ？！ ``` "
    "> 2020年1月1日 12:30: &#x4e00; ├ "
)


@pytest.mark.parametrize("unit", UNITS.split())
def test_no_line_takes_more_than_linear_time(unit: str) -> None:
    """One line of a unit thousands of times, with and without spaces, that ends as prose does."""
    began = time.process_time()
    for text in (unit * (30_000 // len(unit)), f"{unit} " * (30_000 // len(unit))):
        order.clean(f"{ARTICLE}\n{text}然后他说。", CONFIG)
    assert time.process_time() - began < 10


def test_table_rows_end_with_a_bar() -> None:
    """A row of many bars that ends otherwise once took time that doubled with each bar."""
    assert BY_NAME["table_row"]("| 名 | 值 |  ", CONFIG) is None
    assert BY_NAME["table_row"]("|||", CONFIG) is None
    for line in ("| 名 |", "a | 名 | 值 |", "| 名 | 值", "| " * 60 + "值"):
        assert BY_NAME["table_row"](line, CONFIG) == line


def test_wrapped_lines_leave_verse_alone() -> None:
    verse = "\n".join(["床前明月光，", "疑是地上霜。", "举头望明月，", "低头思故乡。"] * 3)
    assert BY_NAME["wrapped_lines"](verse, CONFIG) == verse


def test_clean_drops_lines_counts_them_and_keeps_samples() -> None:
    head = "# 标题在这里\r\n\r\n\r\n[#]: author: x\n"
    text = head + "正文第一句话。\u200b\n======\n版权所有：某公司\n正文第二句话（）。"
    tally = order.Tally()
    assert order.clean(text, CONFIG, tally, "doc/1") == "标题在这里\n正文第一句话。\n正文第二句话。"
    for counter in ("front_matter.dropped", "rule_line.dropped", "boilerplate.dropped", "markdown.changed"):
        assert tally.counts[counter] == 1, counter
    assert tally.counts["empty_brackets.characters"] == 2
    assert ("boilerplate", "doc/1", "版权所有：某公司") in tally.samples


def test_lines_end_at_newline_only() -> None:
    """Case 15: U+2028 ends no line."""
    cleaned = order.clean("甲组的同学都来了\u2028乙组的同学\n丙组的同学没有来", CONFIG)
    assert cleaned is not None
    assert len(cleaned.split("\n")) == 2


def test_entities_hide_no_characters() -> None:
    """What an entity stands for is cleaned like any character: no-break and zero-width spaces, full width."""
    assert order.clean("甲组的同学&nbsp;&nbsp;都&#8203;来了&#65297;次", CONFIG) == "甲组的同学 都来了1次"


def test_protected_variants_survive_conversion() -> None:
    """``-{乾}-`` stays though t2s would make 干 of it; the rules remove the marks around it."""
    wikitext = "康熙與-{乾}-隆時代的學者們編了很多書。"
    text = wikitext_to_text(wikitext, convert="t2s")
    converted = convert_unprotected(text, converter("t2s"))
    assert order.clean(converted, CONFIG) == "康熙与乾隆时代的学者们编了很多书。"
    assert order.clean(converter("t2s")(wikitext_to_text("於-{于}-")), replace(CONFIG, min_han=1)) == "于于"


def test_rejected_document_is_counted_and_sampled_within_bounds() -> None:
    tally = order.Tally(samples_per_rule=2)
    for number in range(5):
        assert order.clean("abc", CONFIG, tally, str(number)) is None
    assert tally.counts["too_short.rejected"] == 5
    assert [key for rule, key, _ in tally.samples if rule == "too_short"] == ["0", "1"]


def test_cleaning_twice_changes_nothing() -> None:
    text = "> 引用**重点**，参见[这里](https://example.org)。\n\n- 第一项内容\n- 第二项内容（ ）\n" * 2
    once = order.clean(text, CONFIG)
    assert once is not None
    assert order.clean(once, CONFIG) == once


@pytest.mark.parametrize(
    ("mode", "expected"), [("mask", "请打<phone>"), ("drop", None), ("keep", "请打13800138000")]
)
def test_personal_data_is_masked_dropped_or_kept(mode: str, expected: str | None) -> None:
    config = replace(CONFIG, personal_data=mode)
    assert BY_NAME["mobile_numbers"]("请打13800138000", config) == expected


def test_another_blocklist(tmp_path: Path) -> None:
    path = tmp_path / "terms.txt"
    path.write_text("# my own\n红苹果\n绿苹果 # a comment\n黄苹果\n黑苹果\n", encoding="utf-8")
    text = "红苹果绿苹果黄苹果黑苹果"
    assert BY_NAME["blocked_terms"](text, replace(CONFIG, blocklist=str(path))) is None
    assert BY_NAME["blocked_terms"](text, CONFIG) == text
    assert BY_NAME["blocked_terms"]("百家乐六合彩时时彩特码", replace(CONFIG, blocklist="none")) is not None
    assert blocklist.content(str(path)) != blocklist.content("bundled")
    with pytest.raises(UserError, match="--blocklist"):
        blocklist.pattern(str(tmp_path / "none.txt"))


# Kept whole: a poem, a couplet, dialogue, statutes, short reviews, lists of names (case 17 and its like).
KEPT = [
    "今天下雨。",
    "很好",
    "床前明月光，疑是地上霜。\n举头望明月，低头思故乡。",
    "天地玄黄 宇宙洪荒\n日月盈昃 辰宿列张\n寒来暑往 秋收冬藏\n闰余成岁 律吕调阳",
    "女：别自满了。\n男：好，好，好。\n女：请多指教。",
    "第一条 本法依宪法制定之。\n第二条 本法自公布日施行。",
    "张三、李四、王五、赵六、孙七、周八、吴九、郑十",
    "我喜欢健身",
    "我喜欢普洱茶",
]


@pytest.mark.parametrize("text", KEPT)
def test_good_text_stays_whole(text: str) -> None:
    assert order.clean(text, replace(CONFIG, min_han=2)) == text


# Largest shares of documents rejected and of characters dropped by line rules, of the first documents of a
# source: above what was read and found right (docs/corpus.md).
BOUNDS = {
    "clue_docs": (0.02, 0.03),
    "history": (0.01, 0.01),
    "laws_hant": (0.02, 0.12),  # tables
    "linuxcn": (0.01, 0.6),  # code, links, front matter
    "reading": (0.01, 0.01),
    "shop_reviews": (0.03, 0.03),
    "short_texts": (0.03, 0.15),  # lists of keywords below news titles
    "web_mixed": (0.02, 0.02),
    "wiki_paragraphs": (0.02, 0.02),
}


@pytest.mark.real
@pytest.mark.parametrize("source", BOUNDS)
def test_rules_remove_little_of_good_text(source: str, real_data: Path) -> None:
    with gzip.open(real_data / "corpus" / f"{source}.jsonl.gz", "rt", encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line in islice(file, 400)]
    cleaned = order.clean_all(texts, CONFIG)
    kept = [(text, after) for text, after in zip(texts, cleaned, strict=True) if after is not None]
    read, rejected = len(texts), len(texts) - len(kept)
    before, after = (sum(map(len, each)) for each in zip(*kept, strict=True))
    most_rejected, most_dropped = BOUNDS[source]
    assert rejected <= most_rejected * read
    assert before - after <= most_dropped * before
