"""Cleaning rules: pure functions in ordered tuples.

A rule takes a text and the configuration and returns the text to go on with, or ``None`` to reject it.
Text rules see a whole document, line rules one line; a line that is rejected is dropped from its
document. A rule's name is its counter, its rejection reason and its test id. To add a rule: write the
function and put it into a tuple.

Benchmark texts never pass through here: their answer offsets would shift (case 10).
"""

from __future__ import annotations

import html
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from corpus.config import CorpusConfig
from corpus.wikitext import remove_empty_brackets

Rule = Callable[[str, CorpusConfig], str | None]

_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_KANA = re.compile("[\u3041-\u30ff]")
_LETTER = re.compile(r"[^\W\d_]")


def count_han(text: str) -> int:
    """Number of Han characters."""
    return len(_HAN.findall(text))


# --- characters -----------------------------------------------------------------------------------

_ITEM = re.compile(
    r"\s*(?:[（(]?[一二三四五六七八九十○〇百]+[）)、.]|[（(]?\d+[）)、.]|第\s?[一二三四五六七八九十百\d]+\s?[條条章節节])"
)
_WIDE_CHARACTER = re.compile(
    "[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60]"
)
LEAST_WRAP = 40  # columns; narrower lines are verse or lists, not wrapped paragraphs


def wrapped_lines(text: str, config: CorpusConfig) -> str:
    """Paragraphs broken at a fixed column become one line again; items of a list stay on lines of their own.

    A text counts as wrapped when a quarter of its lines end within four columns of each other, beyond
    column 40, and hardly any goes further.
    """
    if text.count("\n") < 4:
        return text
    lines = text.replace("\r\n", "\n").split("\n")
    widths = [len(line) + len(_WIDE_CHARACTER.findall(line)) for line in (raw.rstrip() for raw in lines)]
    many = Counter(width for width in widths if width >= LEAST_WRAP)
    margin = max(many, key=lambda w: (sum(many[w - i] for i in range(4)), w), default=0)
    full = [margin - 3 <= width <= margin for width in widths]
    beyond = sum(width > margin for width in widths)
    if sum(full) < max(4, 0.25 * sum(map(bool, widths))) or beyond > 0.05 * len(lines):
        return text
    joined = [lines[0]]
    for line, follows_full in zip(lines[1:], full, strict=False):
        if follows_full and line.strip() and not _ITEM.match(line):
            before, after = joined[-1].rstrip(), line.strip()
            space = " " if before[-1:].isascii() and before[-1:].isalnum() and after[:1].isascii() else ""
            joined[-1] = before + space + after
        else:
            joined.append(line)
    return "\n".join(joined)


_BROKEN_DECIMAL = re.compile(r"(?<=\d\.)\n(?=\d+[^\d.、)）])")


def broken_decimals(text: str, config: CorpusConfig) -> str:
    """Numbers that a careless sentence splitter cut at their point (``3.`` / ``5 元``) become whole."""
    return _BROKEN_DECIMAL.sub("", text)


def line_ends(text: str, config: CorpusConfig) -> str:
    """``\\r\\n`` and ``\\r`` are line ends; U+2028, U+0085 and their like are not (case 15)."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def normal_form_c(text: str, config: CorpusConfig) -> str:
    """NFC: composes accents, unifies compatibility ideographs (case 14); never NFKC (case 13)."""
    return text if unicodedata.is_normalized("NFC", text) else unicodedata.normalize("NFC", text)


_WIDE = "".join(chr(c) for a, z in ("０９", "ＡＺ", "ａｚ") for c in range(ord(a), ord(z) + 1))
_WIDE_TABLE = {ord(c): ord(c) - 0xFEE0 for c in _WIDE}
_WIDE_FOUND = re.compile(f"[{_WIDE}]")


def wide_letters(text: str, config: CorpusConfig) -> str:
    """Full-width Latin letters and digits become ASCII; full-width punctuation stays (case 13)."""
    return text.translate(_WIDE_TABLE) if _WIDE_FOUND.search(text) else text


def _class_of(categories: str, exempt: str = "") -> str:
    chosen = set(categories.split())
    # planes 2 and 3 hold only Han: newer characters there are "unassigned" to an older Python
    codes = [
        code
        for code in range(sys.maxunicode + 1)
        if not 0x20000 <= code < 0x40000
        and unicodedata.category(chr(code)) in chosen
        and chr(code) not in exempt
    ]
    ranges: list[list[int]] = []
    for code in codes:
        if ranges and code == ranges[-1][1] + 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"\\U{a:08x}-\\U{b:08x}" for a, b in ranges)


_INVISIBLE = re.compile(
    f"[{_class_of('Cf Co Cn Cs Cc', exempt=chr(9) + chr(10) + chr(13) + chr(0x85))}\ufffd]"
)
_SPACE = re.compile(f"[{_class_of('Zs Zl Zp')}\\t\\x85]+")


def invisible_characters(text: str, config: CorpusConfig) -> str:
    """Format, private, unassigned, control characters and U+FFFD go; spaces of any kind become one."""
    if "  " not in text and "\ufffd" not in text and text.replace("\n", "").isprintable():
        return text  # a fast way to know, for most texts
    return _SPACE.sub(" ", _INVISIBLE.sub("", text))


_TAGS = (
    "a abbr b big blockquote br center cite code del dd div dl dt em font h1 h2 h3 h4 h5 h6 hr i iframe img "
    "ins kbd li mark nobr ol p pre q rp rt ruby s samp script section small span strike strong style sub sup "
    "table tbody td th thead tr tt u ul var video"
)
_ATTRIBUTE = r"""\s+[a-zA-Z][\w:.-]*(?:\s*=\s*(?:"[^"<>]*"|'[^'<>]*'|[^\s"'<>]+))?"""
_TAG = re.compile(rf"</?(?:{'|'.join(_TAGS.split())})(?:{_ATTRIBUTE}){{0,20}}\s*/?>", re.IGNORECASE)
_TAG_WITH_CONTENT = re.compile(
    r"<(script|style|rt|rp)\b[^<>]*>.*?</\1>|<!--.*?-->", re.IGNORECASE | re.DOTALL
)
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]{2,8});")


def html_remains(text: str, config: CorpusConfig) -> str:
    """HTML tags go (with the content of scripts, styles and ruby readings); entities become characters."""
    if "<" in text:
        text = _TAG.sub("", _TAG_WITH_CONTENT.sub("", text))
    return _ENTITY.sub(lambda match: html.unescape(match[0]), text) if "&" in text else text


_LONG_RUN = re.compile(r"([^\sA-Za-z0-9])\1{3,}")


def long_runs(text: str, config: CorpusConfig) -> str:
    """Four or more of one character, not a Latin letter or digit, become three (哈哈哈哈哈, ！！！！！)."""
    return _LONG_RUN.sub(r"\1\1\1", text)


_FENCE = re.compile(r"^[ >]*(```|~~~).*?(?:^[ >]*\1[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)


def code_fences(text: str, config: CorpusConfig) -> str:
    """Markdown code blocks between fences go; an unclosed fence ends with the text only if little follows."""
    if "```" not in text and "~~~" not in text:
        return text
    return _FENCE.sub(lambda m: "" if count_han(m[0]) < 0.3 * len(m[0]) else m[0].replace(m[1], ""), text)


# --- lines ----------------------------------------------------------------------------------------

_FRONT_MATTER = re.compile(r"^\[#\]:|^\s*\[[^\]]{1,100}\]:\s*(?:https?:|<|/|#|\()")


def front_matter(line: str, config: CorpusConfig) -> str | None:
    """Metadata lines ``[#]: ...`` and link definitions ``[1]: https://...``."""
    return None if _FRONT_MATTER.match(line) else line


_RULE_LINE = re.compile(r"^[\s\-=*_|:+~#.·—─━═]*$")


def rule_line(line: str, config: CorpusConfig) -> str | None:
    """Lines drawn from dashes, stars and bars."""
    return None if line and _RULE_LINE.match(line) else line


_TABLE_ROW = re.compile(r"^\s*(?:\|(?:.*\|){2,}\s*$|[│┃║├┌└┝╔╠╚┏┣┗])")


def table_row(line: str, config: CorpusConfig) -> str | None:
    """Rows of Markdown tables and of tables drawn with box characters: their cells cut sentences apart."""
    return None if _TABLE_ROW.match(line) else line


_CODE = re.compile(
    r"^(?: {4,}|\t)|^\s*(?:[$#>]\s|sudo |#include|import |def |class |return\b|function\b|var |let |const )"
    r"|[;{}]\s*$|^\s*[\w.\-]+\s*[=:]\s*\S+$|::|->|=>|&&|\|\|"
)


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
_BLOCK = re.compile(r"^\s*(?:>+\s*)*(?:#{1,6}\s+|[-*+•]\s+)|^\s*>[>\s]*")
_HEADING_END = re.compile(r"(?<=\S)\s+#{1,6}\s*$")


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


_URL = re.compile(r"<?(?:https?|ftp)://[!-~]+|(?<![\w.@/])www\.[\w\-]+\.[!-~]+")


def addresses(line: str, config: CorpusConfig) -> str | None:
    """Web addresses go; a line of nothing else goes with them."""
    return (
        _URL.sub(lambda match: match[0][-1] if match[0][-1] in ",;)" else "", line)
        if "www." in line or "://" in line
        else line
    )


_BOILERPLATE = re.compile(
    r"""
      ^\s*(?:via|from|原文|来自|來自|来源|來源|出处|出處|译自|摘自)\s*[:：]\s*(?:\[?https?\b.*)?$
    | ^\s*(?:作者|编辑|責任編輯|责任编辑|责编|編輯|记者|記者|译者|譯者|校对|校對|选题)\s*[:：]
        [^，。！？?!；;,…～]{0,30}$
    | ^\s*[（(]\s*题图 | ^本文由.{0,30}(?:原创|原創|编译|編譯|首发|整理发布|授权发布|翻译)
    | (?:版权|版權|著作權|著作权)(?:所有|声明|聲明)\s*(?:$|[:：©©,，.。]|(?:未经|不得|翻印|侵权|违者))
    | ^.{0,20}(?:Copyright|©|\(c\))\s*(?:©|\(c\))?\s*(?:19|20)\d\d | [Aa]ll\s[Rr]ights\s[Rr]eserved
    | (?:未经|未經).{0,12}(?:不得|禁止|严禁|嚴禁|请勿|請勿).{0,12}(?:转载|轉載|复制|複製)
    | (?:转载|轉載|引用)(?:请|請|须|須|时请|時請).{0,6}(?:注明|註明|保留|联系|聯繫)
    | ^\s*(?:分享|分享到|转发|轉發|收藏|点赞|點讚|举报|舉報|打印|列印|关闭窗口|返回顶部|回到頂端|回顶部
        |返回首页|回首頁|上一[篇页頁章]|下一[篇页頁章]|首页|首頁|登录|登錄|登入|注册|註冊|阅读原文|閱讀原文|阅读全文
        |查看更多|更多|展开全文|点击进入|加载中|相关阅读|相关文章|相關文章|相关新闻|相關新聞
        |热门推荐|熱門推薦|猜你喜欢|广告|廣告
        |网友评论|发表评论)
        (?:\s*[:：].{0,40})?\s*[>»›…]*$(?<![。！？])
    | (?:扫码|掃碼|扫描|掃描|扫一扫|掃一掃|长按|長按).{0,12}(?:关注|關注|加入|添加|入群|进群)
    | ^.{0,20}(?:长按|長按).{0,8}(?:二维码|二維碼|识别|識別)
    | ^.{0,15}(?:关注|關注|微信搜索|添加).{0,12}(?:公众号|公眾號|微信号).{0,20}$
    | (?:ICP[备證证]|公网安备|网络文化经营许可证|广播电视节目制作)
    | ^.{0,12}(?:点击|點擊|點選)(?:此处|這裡|这里|查看|進入|进入|下载|下載|图片|圖片).{0,20}$(?<![。！？])
    """,
    re.VERBOSE,
)
BOILERPLATE_LENGTH = 60  # characters; a longer line holds text of its own


def boilerplate(line: str, config: CorpusConfig) -> str | None:
    """Copyright, share, navigation, editor and follow-us lines."""
    return None if len(line) <= BOILERPLATE_LENGTH and _BOILERPLATE.search(line) else line


_SEPARATOR = re.compile(r"\s*[|｜·•»›]\s*|\s+[/>]\s+")


def link_list(line: str, config: CorpusConfig) -> str | None:
    """Menus: five or more short entries between bars or arrows, without sentence punctuation."""
    if re.search("[。！？；，：“]", line):
        return line
    entries = [entry for entry in _SEPARATOR.split(line) if entry]
    return None if len(entries) >= 5 and max(map(len, entries)) <= 12 else line


def no_han(line: str, config: CorpusConfig) -> str | None:
    """Lines without a Han character."""
    return line if _HAN.search(line) else None


def little_han(line: str, config: CorpusConfig) -> str | None:
    """Lines of 20 characters or more with under six Han that are almost all code or foreign text."""
    if len(line) < 20:
        return line
    han, share = count_han(line), config.min_line_han_share
    says_something = han >= 6 or han >= share * len(line) or han >= share * len(_LETTER.findall(line))
    return line if says_something else None


# --- documents ------------------------------------------------------------------------------------


def empty_brackets(text: str, config: CorpusConfig) -> str:
    """Brackets left with nothing but punctuation and space go, from the inside out (case 9)."""
    return remove_empty_brackets(text)


def too_short(text: str, config: CorpusConfig) -> str | None:
    """Fewer Han characters than ``min_han``."""
    return text if count_han(text) >= config.min_han else None


def not_chinese(text: str, config: CorpusConfig) -> str | None:
    """Too small a share of Han among letters and digits, or too much kana."""
    han, kana = count_han(text), len(_KANA.findall(text))
    if kana > config.max_kana_share * (han + kana):
        return None
    return text if han >= config.min_han_share * len(_LETTER.findall(text)) else None


def repeated_lines(text: str, config: CorpusConfig) -> str | None:
    """Documents of six lines or more whose lines mostly repeat earlier ones."""
    lines = text.split("\n")
    repeated = 1 - len(set(lines)) / len(lines)
    return None if len(lines) >= 6 and repeated > config.max_repeated_lines else text


def _says_little(window: str, least: float) -> bool:
    pairs = [window[i : i + 2] for i in range(len(window) - 1)]
    return len(pairs) >= 20 and len(set(pairs)) < least * len(pairs)


def repeated_characters(text: str, config: CorpusConfig) -> str | None:
    """Texts that say one thing over and over: few distinct character pairs at start, middle and end."""
    middle = len(text) // 2
    windows = (text[:500], text[max(0, middle - 250) : middle + 250], text[-500:])
    return None if all(_says_little(window, config.min_distinct_pairs) for window in windows) else text


TEXT_RULES: tuple[Rule, ...] = (
    wrapped_lines,
    line_ends,
    broken_decimals,
    normal_form_c,
    wide_letters,
    invisible_characters,
    html_remains,
    code_fences,
)
LINE_RULES: tuple[Rule, ...] = (
    front_matter,
    rule_line,
    table_row,
    code_line,
    markdown,
    boilerplate,
    addresses,
    long_runs,
    link_list,
    no_han,
    little_han,
)
DOCUMENT_RULES: tuple[Rule, ...] = (
    empty_brackets,
    too_short,
    not_chinese,
    repeated_lines,
    repeated_characters,
)
ALL_RULES = TEXT_RULES + LINE_RULES + DOCUMENT_RULES


@dataclass
class Tally:
    """What the rules did: ``<rule>.changed``, ``<rule>.dropped`` (lines) or ``.rejected`` (documents),
    ``<rule>.characters`` removed by either, and a bounded sample of what went (rule, document id, text)."""

    counts: Counter[str] = field(default_factory=Counter)
    samples: list[tuple[str, str, str]] = field(default_factory=list)
    samples_per_rule: int = 100
    _sampled: Counter[str] = field(default_factory=Counter)

    def record(self, rule: Rule, before: str, after: str | None, *, unit: str, key: str) -> None:
        name = rule.__name__
        self.counts[f"{name}.{'changed' if after is not None else unit}"] += 1
        self.counts[f"{name}.characters"] += len(before) - len(after or "")
        if after is None:
            self.sample(name, key, before)

    def sample(self, name: str, key: str, text: str) -> None:
        """Keep ``text`` as an example unless ``samples_per_rule`` of this rule are kept already."""
        self._sampled[name] += 1
        if self._sampled[name] <= self.samples_per_rule:
            self.samples.append((name, key, text))


def clean(text: str, config: CorpusConfig, tally: Tally | None = None, key: str = "") -> str | None:
    """A document's text after all rules, or None if it is rejected; lines are stripped, empty ones left out.

    Args:
        tally: collects counts and samples.
        key: the document's id, for the samples.
    """
    tally, original = Tally() if tally is None else tally, text
    for rule in TEXT_RULES:
        after = rule(text, config)
        if after != text:
            tally.record(rule, text, after, unit="rejected", key=key)
        if after is None:
            return None
        text = after
    lines = []
    for line in text.split("\n"):
        current: str | None = line.rstrip()
        if not current:
            continue
        for rule in LINE_RULES:
            before = current
            current = rule(before, config)
            if current != before:
                tally.record(rule, before, current, unit="dropped", key=key)
            if not current:
                break
        if current and (current := current.strip()):
            lines.append(current)
    text = "\n".join(lines)
    for rule in DOCUMENT_RULES:
        after = rule(text, config)
        if after != text:
            tally.record(rule, text or original, after, unit="rejected", key=key)
        if after is None:
            return None
        text = after
    return text
