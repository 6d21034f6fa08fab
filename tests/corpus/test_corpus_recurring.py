"""Lines that recur across documents: boilerplate goes, ordinary language stays, a paragraph stays once."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from corpus.config import CorpusConfig
from corpus.duplicates.recurring import group_of, group_sizes, line_records, lines_to_drop
from corpus.job import Job, counts_path, write_array
from corpus.steps.recurring import dropped_lines, recurring_step, sum_groups
from provenance import write_json

CONFIG = CorpusConfig(recurring_lines=3, recurring_share=0.1, repeated_paragraphs=40)
LONG = "南江河发源于北山南麓，全长约三百二十公里，流经两省七县，沿岸多稻田与果园，最后从青石桥下注入东湖。"
MENU = "首页 > 新闻中心 > 国内要闻"


def dropped(
    blocks: list[list[tuple[str, str]]], config: CorpusConfig = CONFIG, parts: int = 1
) -> list[tuple[int, int, int]]:
    """(block, line, rule) to drop, of blocks of (group, text), the hash space in ``parts``."""
    records = [line_records([text for _, text in b], [group for group, _ in b], config) for b in blocks]
    sizes = group_sizes(Counter(group for block in blocks for group, _ in block))
    found = []
    for part in range(parts):
        mine = [r[:, (r[0] >> np.uint64(32)).astype(np.int64) * parts >> 32 == part] for r in records]
        found += [tuple(place) for place in lines_to_drop(mine, sizes, config).T.tolist()]
    return sorted(found)


def test_boilerplate_goes_wherever_it_stands() -> None:
    blocks = [
        [("a", f"{MENU}\n今天下雨。"), ("a", f"明天晴。\n{MENU.replace('>', '|')}")],
        [("a", f"{MENU}\n后天阴。")],
    ]
    expected = [(0, 0, 0), (0, 3, 0), (1, 0, 0)]
    assert dropped(blocks) == expected
    assert dropped(blocks, parts=5) == expected
    assert dropped(blocks, replace(CONFIG, recurring_lines=4)) == []
    assert dropped(blocks, replace(CONFIG, recurring_lines=0)) == []


def test_a_line_counts_within_its_site_and_once_a_document() -> None:
    assert dropped([[(site, f"{MENU}\n今天下雨。") for site in "abc"]]) == []
    assert dropped([[("a", f"{MENU}\n{MENU}\n{MENU}\n今天下雨。")]]) == []


def test_a_share_of_the_sites_documents_is_needed_too() -> None:
    """3 of 40 documents are less than a tenth."""
    block = [("a", f"{MENU}\n今天有{n}人。") for n in "一二三"]
    block += [("a", f"第{i}天下雨。\n路滑。") for i in range(37)]
    assert dropped([block]) == []
    assert len(dropped([block[:30]])) == 3


@pytest.mark.parametrize(
    "line",
    [
        "好。",
        "谢谢！",
        "谢谢你！",
        "女：好的，没问题！",
        "本法用词定义如下：",
        "为什么这样说呢？",
        "总结",
        "第一章总则",
        "他说：“好的，没问题。”",
    ],
)
def test_ordinary_language_stays(line: str) -> None:
    assert dropped([[("a", f"{line}\n第{i}天。") for i in range(50)]]) == []


def test_whole_documents_are_no_boilerplate() -> None:
    """A review that many write is a duplicate, of which one stays."""
    assert dropped([[("a", "手机支持无线充电吗")] * 10]) == []


def test_copies_of_a_document_count_once() -> None:
    """A page that was fetched ten times is a duplicate; its headings and sentences are no boilerplate."""
    page = "静夜里雨声敲打着窗外的芭蕉\n他想起故乡的炊烟，于是写下了这首长长的诗寄给母亲。\n今天下雨。"
    assert dropped([[("a", page)] * 5, [("a", page.replace("，", " "))] * 5]) == []
    others = [("a", f"静夜里雨声敲打着窗外的芭蕉\n第{i}天下雨。") for i in range(2)]
    assert len(dropped([[("a", page)] * 5, others])) == 7  # three different documents hold the first line


def test_a_sentence_of_near_copies_stays_once() -> None:
    """A page that was fetched at several times differs by its date; what it says is not lost."""
    said = "他想起故乡的炊烟，于是写下了这首长长的诗寄给母亲。”"
    pages = [("a", f"更新于{i}月{i}日星期{i}\n首页新闻中心国内要闻\n{said}") for i in "一二三四五"]
    found = dropped([pages[:2], pages[2:]])
    assert [place for place in found if place[1] % 3 == 1] == [
        (0, 1, 0),
        (0, 4, 0),
        (1, 1, 0),
        (1, 4, 0),
        (1, 7, 0),
    ]
    assert [place for place in found if place[1] % 3 == 2] == [(0, 5, 0), (1, 2, 0), (1, 5, 0), (1, 8, 0)]
    assert dropped([pages[:2], pages[2:]], parts=3) == found


def test_a_paragraph_stays_once() -> None:
    blocks = [
        [("a", f"甲。\n{LONG}\n{LONG}"), ("b", LONG.replace("，", " "))],
        [("c", f"乙。\n{LONG}\n丙。")],
    ]
    expected = [(0, 3, 1), (1, 1, 1)]  # the first document keeps both of its own
    assert dropped(blocks) == expected
    assert dropped(blocks, parts=3) == expected
    assert dropped(blocks, replace(CONFIG, repeated_paragraphs=0)) == []
    assert dropped(blocks, replace(CONFIG, repeated_paragraphs=60)) == []


def test_ranks_share_the_hash_space(tmp_path: Path) -> None:
    """However many ranks look, each block gets the same lines to drop."""
    texts = [[f"{MENU}\n第{i}天。\n{LONG}\n第{i}天下雨了没有人出门的事" for i in range(5)] for _ in range(2)]
    found = []
    for ranks in (1, 3, 7):
        job = Job(config=CONFIG, parts=(), work=tmp_path / str(ranks), vocab=tmp_path)
        for block, block_texts in enumerate(texts):
            groups = ["a"] * len(block_texts)
            write_array(job.work / "lines" / f"{block:05d}.npy", line_records(block_texts, groups, CONFIG))
            write_json(counts_path(job, "clean", block), {"groups": {"a": len(block_texts)}})
        sum_groups(job)
        for rank in range(ranks):
            recurring_step(None, rank, ranks, job)
        found.append([[part.tolist() for part in dropped_lines(job, block)] for block in range(2)])
    assert found[0] == found[1] == found[2]
    assert found[0][0][0] == [0, 4, 6, 8, 10, 12, 14, 16, 18]  # the first paragraph stays


def test_nothing_to_find() -> None:
    assert dropped([[]]) == []
    assert dropped([[("a", "甲。\n乙。")], []]) == []


def test_group_of_a_page_is_its_site() -> None:
    assert group_of("https://news.example.cn/a/1.html", "web") == "news.example.cn"
    assert group_of("wiki/12", "wiki") == "wiki"
    assert group_of("http://", "web") == "web"
