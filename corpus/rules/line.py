"""Cleaning rules over one line: markup, menus, boilerplate, lines that are not Chinese.

Each takes a line and the configuration and returns the line to go on with, or None to drop it. See
:mod:`corpus.rules.order`.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from corpus.config import CorpusConfig
from corpus.rules.gates import Texts, needs, where
from corpus.rules.trigger import lines_with
from corpus.script import HAN, LETTER, count_han, script_of
from corpus.wiki.brackets import GAP, close_gaps
from corpus.wiki.markup import variant_text

_FRONT_MATTER = re.compile(r"^\[#\]:|^\s*\[[^\]]{1,100}\]:\s*(?:https?:|mailto:|<|/|#|\()")


@needs(r"\[")
@lines_with(r"\[")
def front_matter(line: str, config: CorpusConfig) -> str | None:
    """Metadata lines ``[#]: ...`` and link definitions ``[1]: https://...``."""
    return None if _FRONT_MATTER.match(line) else line


_RULE_LINE = re.compile(r"^[\s\-=*_|:+~#.·—─━═]*$")


_LEADING_MARKS = re.compile("^[，。、；：！？ ]+")


@needs(r"\n", "[，。、；：！？]")
@lines_with("\n[，。、；：！？]")
def leading_marks(line: str, config: CorpusConfig) -> str | None:
    """Marks that stand only after a word, left at the start of a line by a cut or a dropped template."""
    return _LEADING_MARKS.sub("", line)


@needs(r"\n", r"[-=*_|:+~#.·—─━═]")
@lines_with(r"\n[-=*_|:+~#.·—─━═]")
def rule_line(line: str, config: CorpusConfig) -> str | None:
    """Lines drawn from dashes, stars and bars."""
    return None if line and _RULE_LINE.match(line) else line


_TABLE_ROW = re.compile(r"^\s*(?:\|[^|]*\|.*\|\s*$|[│┃║├┌└┝╔╠╚┏┣┗])")


@needs("[|│┃║├┌└┝╔╠╚┏┣┗]")
@lines_with("[|│┃║├┌└┝╔╠╚┏┣┗]")
def table_row(line: str, config: CorpusConfig) -> str | None:
    """Rows of Markdown tables and of tables drawn with box characters: their cells cut sentences apart."""
    return None if _TABLE_ROW.match(line) else line


_CODE = re.compile(
    r"^\s*(?:[$#>]\s|sudo |#include|import |def |class |return\b|function\b|var |let |const )"
    r"|[;{}]\s*$|^\s*[\w.\-]+\s*[=:]\s*\S+$|::|->|=>|&&|\|\|"
)


@needs("[$#>={};:&|sidcrfvl]")
@lines_with(r"\$|#|>|=|\{|\}|;|:|&|\||\n(?:sudo |import |def |class |return\b|function\b|var |let |const )")
def code_line(line: str, config: CorpusConfig) -> str | None:
    """Lines that look like code or shell and hold hardly any Han."""
    return None if _CODE.search(line) and count_han(line) < 0.1 * len(line) else line


_IMAGE = re.compile(r"!\[[^\]]*\](?:\([^()\s]*(?:\([^()]*\)[^()\s]*)*(?:\s+[\"'][^)]*)?\)|\[[^\]]*\])?")
_LINK = re.compile(
    r"\[([^\[\]]*)\](?:\(\s*<?[!-'*-~]*(?:\([!-~]*?\)[!-'*-~]*)?>?(?:\s+[\"'][^)]*)?\s*\)|\[[^\[\]]*\])"
)
_FOOT = re.compile(r"(?<=[^\sA-Za-z0-9_)\]])\[\^?\d{1,3}\]")
_STRONG = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")
_EMPHASIS = re.compile(r"(?<![A-Za-z0-9_*])\*(?=[^\s*])([^*\n]+?)(?<=[^\s*])\*(?![A-Za-z0-9_*])")
_CODE_SPAN = re.compile(r"(`+)([^`]+)\1")
_BLOCK = re.compile(r"^[>\s]*(?:#{1,6}\s+|##{1,5}(?=[^\s#])|[-*+•]\s+)|^\s*>[>\s]*")
_HEADING_END = re.compile(r"(?<=\S)\s+#{1,6}\s*$")


@needs(r"[\[*`#>•_+-]")
@lines_with(r"\[|\*|`|#|>|•|__|\n-|\n\+")
def markdown(line: str, config: CorpusConfig) -> str | None:
    """Markdown links, emphasis, headings, quotes and bullets become their text; images go."""
    plain = _BLOCK.sub("", line, count=1) if line[:1] in " #>-*+•" else line
    if "[" in plain:
        plain = _FOOT.sub("", _LINK.sub(r"\1", _IMAGE.sub("", plain)))
    if "*" in plain or "__" in plain:
        plain = _EMPHASIS.sub(r"\1", _STRONG.sub(r"\2", plain))
    if "`" in plain:
        plain = _CODE_SPAN.sub(r"\2", plain)
    if "#" in plain:
        plain = _HEADING_END.sub("", plain)
    return plain


_URL = re.compile(r"<?((?:https?|ftp)://[!-~]+|(?<![\w.@/])www\.[\w\-]+\.[!-~]+)")


def _without_address(match: re.Match[str]) -> str:
    tail = match[1][len(match[1].rstrip("),.;:!?")) :]
    if "(" in match[1]:  # a_(b): the bracket is the address's own
        tail = tail.removeprefix(")")
    return GAP + tail


@needs("[:w]", "[/w]")
@lines_with(r"://|www\.")
def addresses(line: str, config: CorpusConfig) -> str | None:
    """Web addresses go, with a mark that is then one too many; a line of nothing else goes with them."""
    return close_gaps(_URL.sub(_without_address, line))


def _four_alike(texts: Texts, config: CorpusConfig) -> NDArray[np.bool_]:
    found = np.zeros(len(texts.codes), dtype=bool)
    two = texts.codes[1:] == texts.codes[:-1]
    found[:-3] = two[:-2] & two[1:-1] & two[2:]
    return texts.count(found) > 0


_LONG_RUN = re.compile(r"([^\sA-Za-z0-9])\1{3,}")


@where(_four_alike)
@lines_with(r"(.)\1\1\1")
def long_runs(line: str, config: CorpusConfig) -> str | None:
    """Four or more of one character, not a Latin letter or digit, become three (哈哈哈哈哈, ！！！！！)."""
    return _LONG_RUN.sub(r"\1\1\1", line)


_PUNCTUATION = re.compile("[。！？；，：“]")
_SEPARATOR = re.compile(r"\s*[|｜·•»›]\s*|\s+[/>]\s+")
_PATH = re.compile(r"(?:[^＞»›]{1,16}[＞»›]){2,}[^＞»›]{1,16}")


@needs("[|｜·•»›/>＞]")
@lines_with(r"\||｜|·|•|»|›|＞| / | > ")
def link_list(line: str, config: CorpusConfig) -> str | None:
    """Menus: five or more short entries between bars or arrows, or a path of three between ＞ or »; without
    sentence punctuation."""
    if _PUNCTUATION.search(line):
        return line
    if _PATH.fullmatch(line):
        return None
    entries = [entry for entry in _SEPARATOR.split(line) if entry]
    return None if len(entries) >= 5 and max(map(len, entries)) <= 12 else line


_EDGES = re.compile("(?<=[（(])[，、；]+|[，、；]+(?=[）)])")
_BRACKET = re.compile(r"(?<=[（(])[^（()）\n]*(?=[）)])")
_EMPTY_LABEL = re.compile(
    rf"(?:^|(?<=[，；、,])) *{HAN.pattern}{{1,8}}[：:][\"'“”‘’ ]*(?:$|[，；、,])"
)  # of a value that was dropped, with the mark behind it


def _without_empty_labels(inside: re.Match[str]) -> str:
    return _EMPTY_LABEL.sub("", inside[0])


@needs("[（(，、；：:]", "[，、；）,)\"'“”‘’ ]")
@lines_with(r"[（(][，、；]|[，、；][）)]|[：:][\"'“”‘’ ]*[，；、,）)]")
def bracket_edges(line: str, config: CorpusConfig) -> str:
    """What was dropped from brackets leaves commas at their edges, and labels without a value (学名：)."""
    return _EDGES.sub("", _BRACKET.sub(_without_empty_labels, line))


_FUNCTION_CHARACTER = re.compile("[的了很不是也都太还就我你他她吗吧呢啊着过没有这那還這過嗎]")
_ASCII_STOPS = (".", "!", "?", "~")
_KEYWORDS = re.compile(r"(?:[^,，。！？；：“”]{1,15},){3,}[^,，。！？；：“”]{1,15}")


@needs(",")
@lines_with(r",[^\n,]+,[^\n,]+,")
def keyword_list(line: str, config: CorpusConfig) -> str | None:
    """Four short entries between ASCII commas without any character that sentences need, or five or more of
    which a quarter at most hold one; a line that ends as a sentence does is none."""
    if line.endswith(_ASCII_STOPS) or not _KEYWORDS.fullmatch(line):
        return line
    entries = line.split(",")
    like_sentences = sum(bool(_FUNCTION_CHARACTER.search(entry)) for entry in entries)
    return line if like_sentences > (len(entries) // 4 if len(entries) >= 5 else 0) else None


_SERVICE = r"(?:微信|薇信|威信|扣扣|weixin|wechat|(?<![a-z])(?:qq|vx)(?![a-z]))"
_ACCOUNT = r"[公帐账号號群众眾]"
_CONTACT = re.compile(  # an account with a word that asks for it: no review that names its writer's
    rf"(?i)(?:(?:[加添搜詢询]|关注|關注|联系|聯繫).{{0,6}}{_SERVICE}{_ACCOUNT}{{0,4}}|{_SERVICE}{_ACCOUNT}{{1,4}}"
    r"|(?<![增添])[加＋+]\s?(?:v[信x]|微|扣|[vq](?![a-z])))\s?[:：]?\s?[a-z0-9_-]{5,}"
)
CONTACT_LENGTH = 80  # characters; a longer line says more than whom to write to


@needs("[A-Za-z0-9_\u017f\u212a-]", "[A-Za-z0-9_\u017f\u212a-]")
@lines_with(r"微信|薇信|威信|扣扣|QQ|qq|Qq|qQ|V|v|W|w|加|\+|＋")
def contact_advert(line: str, config: CorpusConfig) -> str | None:
    """Lines that ask to write to a WeChat or QQ account."""
    return None if len(line) <= CONTACT_LENGTH and _CONTACT.search(line) else line


_MOJIBAKE = re.compile(
    "锟斤拷|烫烫烫|屯屯屯|ï¿½|(?:[\u00c2-\u00f4][\u0080-\u00bf\u0152-\u0178\u2018-\u2022]{1,3}){2}"
)


@needs("[锟烫屯ï\u00c2-\u00f4]", "[斤烫屯¿\u0080-\u00bf\u0152-\u0178\u2018-\u2022]")
@lines_with("锟斤拷|烫烫烫|屯屯屯|ï¿½|[\u00c2-\u00f4][\u0080-\u00bf\u0152-\u0178\u2018-\u2022]")
def mojibake(line: str, config: CorpusConfig) -> str | None:
    """Lines that were decoded with a wrong charset."""
    return None if _MOJIBAKE.search(line) else line


_VARIANT = re.compile(r"-\{([^{}]*)\}-")


@needs("-", r"\{")
@lines_with(r"-\{")
def variant_markup(line: str, config: CorpusConfig) -> str | None:
    """``-{zh-hans:甲;zh-hant:乙}-`` that was left in prose becomes the text of the line's own script."""
    script = "hant" if script_of(_VARIANT.sub("", line)) == "hant" else "hans"
    return _VARIANT.sub(lambda match: variant_text(match[1], script), line)


_ITEM = re.compile("[（(]?[一二三四五六七八九十]{1,3}[）)、]")  # of a Chinese list, whatever it names
LEAST_HAN = 6  # with as many a line says something in Chinese, whatever else it holds
_NO_HAN = HAN.pattern.replace("[", r"[^\n")


_SECTION = re.compile("0[1-9]|[①-⑳Ⅰ-Ⅻ]")


@where(lambda texts, config: texts.least_han == 0)
@lines_with(rf"\n{_NO_HAN}*+(?:\n|\Z)")
def no_han(line: str, config: CorpusConfig) -> str | None:
    """Lines without a Han character, but for the number of a section."""
    return line if HAN.search(line) or _SECTION.fullmatch(line) else None


@where(lambda texts, config: texts.least_han < LEAST_HAN)
@lines_with(rf"\n(?:{_NO_HAN}*+{HAN.pattern}){{0,{LEAST_HAN - 1}}}+{_NO_HAN}*+(?:\n|\Z)")
def little_han(line: str, config: CorpusConfig) -> str | None:
    """Lines of 20 characters or more with under six Han that are almost all code or foreign text."""
    if len(line) < 20 or _ITEM.match(line):
        return line
    han, share = count_han(line), config.min_line_han_share
    says_something = han >= LEAST_HAN or han >= share * len(line) or han >= share * len(LETTER.findall(line))
    return line if says_something else None
