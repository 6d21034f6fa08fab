"""The report of given counts: its figures are the counts, its pages are whole, the same and safe to open."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from corpus.config import CorpusConfig
from corpus.report.counts import added, by_file, most
from corpus.report.examples import Cluster, Found
from corpus.report.funnel import stages
from corpus.report.page import markdown, marked, web_page
from corpus.report.parts import SHOWN, Section, percent, short
from corpus.report.sections import from_difference, meaning, sections
from corpus.rules.order import ALL_RULES

ROOT = Path(__file__).resolve().parents[2]
HOSTILE = "<script>alert('x')</script> & \"|`*\u202e 名字"
FACTS = {
    "code": "0123456789ab",
    "inputs": [{"name": "a.jsonl", "sha256": "ab" * 32}, {"name": "b.xml", "sha256": "cd" * 32}],
    "benchmarks": {"qa/dev.json": "ef" * 32},
}
FOUND = Found(
    rejected={"too_short": [HOSTILE], "near_duplicate": ["几乎一样的文章。"]},
    kept={"news": [("news/1", f"第一行。\n{HOSTILE}")]},
    clusters=[Cluster(17, 0.76, ("a", "原文"), ("b", "另一篇"))],
    sizes={2: 5, 3: 2, 17: 1},
)


def group(documents: int, han: int, tokens: int, unk: int, held_out: int) -> dict[str, int]:
    return {"documents": documents, "han": han, "tokens": tokens, "unk": unk, "held_out": held_out}


def counted() -> dict[str, Any]:
    """1000 documents read; 100 not sampled, 50 rejected, 10 emptied, 40 + 25 duplicates: 775 are left."""
    return {
        "inputs": [
            {"file": "a.jsonl", "documents": 900, "han": 90_000, "skipped": {"documents": 900}},
            {"file": "b.xml", "documents": 100, "han": 10_000, "skipped": {"skipped: redirect": 13}},
        ],
        "skipped": {"documents": 1000, "skipped: redirect": 13},
        "read": {"news": {"documents": 900, "han": 90_000}, "wiki": {"documents": 100, "han": 10_000}},
        "totals": {
            "documents_in": 1000,
            "han_in": 100_000,
            "not_sampled": 100,
            "not_sampled_han": 9_000,
            "rejected": 50,
            "rejected_han": 4_000,
            "cleaned": 850,
            "cleaned_han": 80_000,
            "signed_han": 75_500,
            "emptied": 10,
            "emptied_han": 20,
            "duplicate": 40,
            "duplicate_han": 3_000,
            "near_duplicate": 25,
            "near_duplicate_han": 2_480,
        },
        "rules": {
            "too_short.rejected": 30,
            "too_short.characters": 4_321,
            "not_chinese.rejected": 20,
            "markdown.changed": 777,
            "markdown.characters": 8_765,
            "recurring_line.dropped": 300,
            "recurring_line.characters": 3_600,
            "recurring_line.han": 3_000,
            "repeated_paragraph.dropped": 6,
            "repeated_paragraph.han": 500,
            "benchmark_text.dropped": 9,
            "benchmark_text.characters": 1_234,
            "benchmark_text.han": 1_000,
        },
        "lines": {f"boilerplate\t版权所有 {HOSTILE}": 42, "recurring_line\t上一页 | 下一页": 300},
        "packed": {
            "groups": {
                "news\thans": group(700, 62_000, 70_001, 70, 4),
                "wiki\thans": group(50, 5_000, 6_000, 3, 1),
                "wiki\thant": group(25, 3_000, 3_500, 0, 0),
            },
            "rows": {
                "128": {
                    "rows_train": 600,
                    "rows_heldout": 20,
                    "tokens_train": 70_000,
                    "tokens_heldout": 2_000,
                    "single": 62,
                    "tokens_in": 79_501,
                    "tokens_lost": 15,
                }
            },
            "sizes": {"7": 500, "8": 200, "10": 75},
            "unknown": {"“": 51, "㸆": 2},
        },
        "documents": 775,
        "changed": [{"id": HOSTILE, "before": f"甲{HOSTILE}乙", "after": "甲乙"}],
        "blocks": 3,
        "overlap": {
            "qa/dev.json": {"strings": 800, "whole": 8, "any": 90, "left": 1},
            "qa/train.json": {"strings": 5_000, "whole": 60, "any": 70, "left": 61},
        },
    }


CONFIG = CorpusConfig(length=(128,), decontaminate=True, weights=("news=0.9",))


@pytest.fixture(scope="module")
def content() -> list[Section]:
    return sections(counted(), CONFIG, FOUND, FACTS)


# --- figures --------------------------------------------------------------------------------------


def test_funnel_adds_up(check_funnel: Callable) -> None:
    found = stages(counted())
    check_funnel(found)
    assert [(s.name, s.documents, s.han) for s in found] == [
        ("read", 1000, 100_000),
        ("sampled", 900, 91_000),
        ("rules", 850, 80_000),
        ("recurring lines", 850, 76_500),
        ("benchmark text", 850, 75_500),
        ("emptied", 840, 75_480),
        ("exact duplicates", 800, 72_480),
        ("near duplicates", 775, 70_000),
        ("packed", 775, 70_000),
    ]
    assert found[2].took_documents == {"too_short": 30, "not_chinese": 20}
    assert found[2].took_han == {"whole documents": 4_000, "lines and passages": 7_000}
    assert found[3].took_han == {"recurring_line": 3_000, "repeated_paragraph": 500}


def test_funnel_without_weights_and_benchmarks() -> None:
    summary = counted()
    del summary["totals"]["not_sampled"], summary["totals"]["not_sampled_han"], summary["overlap"]
    summary["rules"] = {k: n for k, n in summary["rules"].items() if not k.startswith("benchmark")}
    assert [s.name for s in stages(summary)] == [
        *("read", "rules", "recurring lines", "emptied", "exact duplicates", "near duplicates", "packed")
    ]
    assert "Benchmark text" not in [s.title for s in sections(summary, CONFIG, FOUND, FACTS)]


@pytest.mark.parametrize(
    "row",
    [
        "| documents | 775 | 77.50 % of read |",
        "| Han characters | 70,000 | 70.00 % of read |",
        "| tokens | 79,501 | 0.09 % unknown |",  # 73 of 79,501
        "| rows of 128 | 620 | 20 held out |",
        "| benchmark text | 8 | found of 800 dev and test strings, 1 left |",
        "| – too_short | −30 |",
        "| too_short |  |  | 30 | 4,321 |",
        "| markdown | 777 |  |  | 8,765 |",
        "| wiki | 100 | 75 | 75.00 % | 10,000 | 8,000 | 80.00 % | 9,500 | 0.03 % | 1 |",
        "| all | 1,000 | 775 | 77.50 % | 100,000 | 70,000 | 70.00 % | 79,501 | 0.09 % | 5 |",
        "| hant | 25 | 3,000 | 3,500 | 4.40 % | 0.00 % |",
        "| wiki | hant | 25 | 3,000 | 3,500 | 4.40 % | 0.00 % |",
        "| near | 25 | 2,480 |",
        "| 2 to 3 documents | 7 | ██████████████████████████████ |",
        "| 16 to 31 documents | 1 |",
        "| qa | dev.json | 800 | 8 | 1.00 % | 90 | 1 |",
        "| 上一页 \\| 下一页 | recurring_line | 300 |",
        "| 64 to 127 | 500 · 64.52 % | ██████████████████████████████ |",
        "| 256 to 511 | 0 · 0.00 % |  |",
        "| 128 | 600 | 20 | 72,000 | 90.73 % | 10.00 % | 15 | 0.02 % |",
        "| “ | U+201C | 51 |",
        f"| b.xml | {'cd' * 32} | 100 | 10,000 | 13 |",
        "| redirect | 13 |",
        "| --weights | news=0.9 | default none |",
        "Development and test text was removed: 9 lines, 1,234 characters",
    ],
)
def test_figures_are_the_counts(content: list[Section], row: str) -> None:
    assert row in markdown("c0ffee", content)


def test_both_pages_have_the_same_numbers(content: list[Section], page_of: Callable) -> None:
    page, text = page_of(web_page("c0ffee", content)), markdown("c0ffee", content)
    numbers = [set(re.findall(r"\d[\d,.]*\d|\d", each)) for each in ("\n".join(page.text), text)]
    assert numbers[0] == numbers[1]
    assert len(numbers[0]) > 80


def test_sums() -> None:
    assert added([{"a": 1, "b": {"x": 2}}, {"b": {"x": 3, "y": 1}}]) == {"a": 1, "b": {"x": 5, "y": 1}}
    parts = [{"file": "f", "documents": 2, "skipped": {}}, {"file": "f", "documents": 3, "skipped": {"s": 1}}]
    assert by_file(parts) == [{"file": "f", "documents": 5, "skipped": {"s": 1}}]
    assert list(most({"b": 2, "a": 2, "c": 3}).items()) == [("c", 3), ("a", 2), ("b", 2)]
    assert [percent(1, 8), percent(1, 10**6), percent(0, 5), percent(0, 0)] == [
        *("12.50 %", "< 0.01 %", "0.00 %", "-")
    ]


def test_every_rule_says_what_it_does() -> None:
    meanings = {rule.__name__: meaning(rule.__name__) for rule in ALL_RULES}
    assert all(meanings.values())
    assert meanings["rule_line"] == "Lines drawn from dashes, stars and bars."
    assert all(len(text) < 250 for text in meanings.values())


def test_documentation_names_every_rule() -> None:
    text = (ROOT / "docs" / "corpus.md").read_text(encoding="utf-8")
    assert [rule.__name__ for rule in ALL_RULES if f"| `{rule.__name__}` |" not in text] == []


# --- pages ----------------------------------------------------------------------------------------


def test_page_is_whole_and_needs_nothing_else(content: list[Section], page_of: Callable) -> None:
    page = page_of(web_page("c0ffee", content))
    assert page.links == page.anchors
    assert len(page.links) == len(content) - 1
    assert page.tags.isdisjoint({"script", "link", "img", "iframe", "object"})
    assert "svg" in page.tags


def test_hostile_text_is_only_shown(content: list[Section], page_of: Callable) -> None:
    """Text, ids and names come from strangers."""
    html = web_page(HOSTILE, content)
    assert "<script" not in html
    assert "\u202e" not in html  # would turn around what follows
    assert "<script>alert('x')</script> & " in "".join(page_of(html).text)
    text = markdown(HOSTILE, content)
    assert "<script>" not in re.sub("`[^`\n]*`", "", text)  # what is in a code span is shown as it is
    assert "\u202e" not in text


def test_no_part_is_empty(content: list[Section], page_of: Callable) -> None:
    empty = sections(
        {**counted(), "lines": {}, "changed": []}, CONFIG, replace(FOUND, clusters=[], sizes={}), FACTS
    )
    for found in (content, empty):
        page_of(web_page("c0ffee", found))
        assert all(section.parts for section in found)


def test_long_text_is_cut() -> None:
    assert short("字" * SHOWN) == "字" * SHOWN
    assert short("字" * (SHOWN + 1)) == "字" * SHOWN + "…"
    assert short(" a\u200bb\r\nc\u3000d\x00 ") == "a\ufffdb\ufffd\nc\u3000d\ufffd"


def test_differences_are_marked() -> None:
    assert marked("甲<b>乙", "甲乙") == ("甲<del>&lt;b&gt;</del>乙", "甲乙")
    assert marked("甲\n乙", "甲乙") == ("甲<del>⏎\n</del>乙", "甲乙")
    assert marked("甲" * 9, "甲" + "乙" * 9) == ("甲" * 9, "甲" + "乙" * 9)
    # beyond what is shown both go on
    long = "".join(chr(0x4E00 + i) for i in range(2 * SHOWN))
    old, new = marked("去掉" + long, long)
    assert old == "<del>去掉</del>" + long[: SHOWN - 2] + "…"
    assert new == long[:SHOWN] + "…"


def test_changes_are_shown_where_they_are() -> None:
    same = "同" * 200
    assert from_difference(f"{same}甲", f"{same}乙") == ("…" + "同" * 60 + "甲", "…" + "同" * 60 + "乙")
    assert from_difference("甲", "乙") == ("甲", "乙")
