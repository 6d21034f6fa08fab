"""The fast way through the rules gives what every rule on every line gives."""

from hypothesis import given
from hypothesis import strategies as st

from corpus.config import PRESETS
from corpus.rules import order

CONFIG = PRESETS["web"]

# What rules act on, and what is close to it.
MARKS = """
甲 乙丙 今天下雨。 第一条 ， 。 ： : 、 · … —— （ ） () （） 《 》 [ ]( ] [1] [^2] [#]: [注] ** * __ _ `
`` ``` # ## #a > - + • | │ ┃ == === --- !!!! ！！！！ 哈哈哈哈 1111 aaaa import sudo return { } ; $ x =
-> && ~~~ 首页|新闻|体育|财经|娱乐 https://a.bc/d www.x.cn &amp; &nbsp; &#8203; < <b> </b> <br> via:
来源： 作者：王五 转载请注明 版权所有 © 2020 Copyright 首页 长按二维码 微信号 微信：abc123 加V 点击查看
word Ω é e\u0301 が ア 한 𠮷 \u200b \ufffd Ｇ ２ \uf900 13800138000 138 0013 8000 +86 11010519491231002X
6222021000112230 a@b.cn 锟斤拷 ä¸­æ–‡ -{ }- -{zh-hans:尔;zh-hant:爾}- 常规赛,季后赛,半决赛,新秀 百家乐
六合彩 时时彩 特码 责编| 来源丨 【编辑：王五】 原标题： （综合整理自 本文 仅代表 观点 不构成 投资建议 下方
二维码 扫描 点【在看】 回复【甲】 发布时间：2023-11-06 点击数：12 资料图 邮件至 申请 01 ② （， ，） 链接：
"""
PIECES = [*MARKS.split(), " ", "\n", "\n\n", "  ", "\u3000", "\t", "\r\n", "\r", "\x85", "\u2028"]


def plain(text: str) -> str | None:
    """Every rule on every line, one after the other, with no thought of speed."""
    after: str | None = text
    for rule in order.TEXT_RULES:
        after = rule(after, CONFIG) if after is not None else None
    lines = []
    for line in (after or "").split("\n"):
        line = line.strip()
        for rule in order.LINE_RULES:
            line = ((rule(line, CONFIG) if line else None) or "").strip()
        if line:
            lines.append(line)
    after = "\n".join(lines)
    for rule in order.DOCUMENT_RULES:
        after = rule(after, CONFIG) if after is not None else None
    return after


@given(st.lists(st.lists(st.sampled_from(PIECES), max_size=40).map("".join), max_size=6))
def test_many_at_once_equal_one_at_a_time(texts: list[str]) -> None:
    assert order.clean_all(texts, CONFIG) == [plain(text) for text in texts]


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_equals_every_rule_on_every_line(text: str) -> None:
    assert order.clean(text, CONFIG) == plain(text)


@given(st.text())
def test_any_text(text: str) -> None:
    assert order.clean(text, CONFIG) == plain(text)
