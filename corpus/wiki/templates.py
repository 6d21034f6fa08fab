"""What stays of a template: the text it carries, as data and small functions; of all others, nothing."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

from corpus.formulas import raised
from corpus.wiki.brackets import GAP

Values = dict[str, str]  # parameters by name or place ("1", "2", ...), stripped

# The parameters to look in; the first that is not empty is taken.
TEXT_TEMPLATES: dict[str, tuple[str, ...]] = {
    name: parameters
    for names, parameters in {
        # formatting
        """nowrap nobr small smaller big bigger large larger em strong sub underline nobold noitalic kbd
        var samp code mono nobreak resize math mvar angbr unicode smallcaps""": ("1",),
        """tl tlx tlp tlg para abbr tooltip circa ca. formatnum 僻字 專名 专名 書名 书名 專名號 专名号 lj zhi
        注音 拼音 ruby rubi chem2 引文""": ("1",),
        "nihongo nihongo2 nihongo3 flag flagcountry country 旗幟 旗帜": ("1", "2"),
        "jpn ja-name": ("j", "ja", "1"),
        """lang lang2 langx transl color colored fontcolor font-color colortext background-color
        background font-size hover hover-title script""": ("2", "text", "1"),
        "transliteration": ("3", "2"),
        "zh": ("1", "c", "s", "t"),
        """quote cquote quotation bquote quotebox quote-box blockquote tq centered-pull-quote poemquote
        引用""": ("text", "quote", "content", "1"),
        "rquote": ("2", "1"),
        "episode-list japanese-episode-list": ("ShortSummary",),
        # lists and hidden parts
        "plainlist plain-list flatlist columns-list columnslist block-indent indent center align-left": (
            "content",
            "1",
        ),
        "hidden collapse": ("content", "text", "2"),
        # links to articles that only another language's edition has
        "le": ("3", "1"),
        "illm ill ilh link-interwiki interlanguage-link": ("lt", "1"),
        "tsl translink": ("4", "3", "2"),
    }.items()
    for name in names.split()
}
TEXT_PREFIXES: dict[str, tuple[str, ...]] = {
    "lang-": ("1", "text"),
    "ruby-": ("1",),
    "link-": ("3", "1"),
    "internal-link-helper/": ("3", "d", "1"),
    "script/": ("1", "2"),
}
CONSTANTS = {
    "!": "|", "=": "=", "(": "{", ")": "}", "!(": "[", ")!": "]", "'": "'", "·": "·", "•": "•", "dot": "·",
    "bull": "•", "spaced-ndash": " – ", "snd": " – ", "spnd": " – ", "ndash": "–", "en-dash": "–", "—": "——",
    "mdash": "—", "em-dash": "—", "--": "—", "nbsp": " ", "space": " ", "pi": "π", "okina": "ʻ", "times": "×",
    "br": "\n", "pb": "\n", "paragraph-break": "\n", "break": "\n", "clear": "\n", "-": "\n",
}  # fmt: skip
CURRENCIES = {
    "usd": "US$", "us$": "US$", "hkd": "HK$", "hk$": "HK$", "twd": "NT$", "nt$": "NT$", "ntd": "NT$",
    "eur": "€", "€": "€", "gbp": "£", "£": "£", "jpy": "¥", "¥": "¥", "cny": "¥", "rmb": "¥", "krw": "₩",
    "cad": "C$", "aud": "A$", "sgd": "S$", "s$": "S$", "inr": "₹", "mop": "MOP$",
}  # fmt: skip
_NAMED = re.compile(r"\s*([^\s=<>\[\]{}]{1,40})\s*=")
_RANGES = {"to": "–", "-": "–", "–": "–", "and": "–", "至": "至", "到": "到", "x": "×", "×": "×", "by": "×"}
_FUNCTIONS = ("formatnum:", "int:", "lc:", "uc:", "lcfirst:", "ucfirst:")  # {{name:text}}
_TITLE = ("pagename", "fullpagename", "subpagename", "basepagename")


def _value(argument: str) -> str:
    return argument.strip() if argument.strip(f" \t\n{GAP}") else ""


def _parameters(arguments: list[str]) -> Values:
    values: Values = {}
    place = 0
    for argument in arguments:
        if named := _NAMED.match(argument):
            values[named[1]] = _value(argument[named.end() :])
        else:
            place += 1
            values[str(place)] = _value(argument)
    return values


def _places(values: Values) -> list[str]:
    """The unnamed parameters that are not empty, in order."""
    return [value for name, value in values.items() if name.isdecimal() and value]


def _first(values: Values, places: tuple[str, ...]) -> str:
    return next((values[place] for place in places if values.get(place)), "")


def _life(values: Values) -> str:
    """``{{bd|1893年|12月26日|1976年|9月9日}}``, the dates after a person's name."""
    first, second, third = (values.get(place, "") for place in "123")
    if second.endswith("年") and not third:  # two years without days
        return f"{GAP}（{first}－{second}）"
    born, died = first + second, third + values.get("4", "")
    return f"{GAP}（{born}－{died}）" if born or died else ""


def _measure(values: Values) -> str:
    """``{{convert|5|to|10|km|mi}}``: the amounts and the unit that were measured, not the converted ones."""
    first, second, third, fourth = (values.get(place, "") for place in "1234")
    if sign := _RANGES.get(second):
        return f"{first}{sign}{third}{fourth}"
    return first + second


def _fraction(values: Values) -> str:
    parts = _places(values)[:3]
    if len(parts) == 1:
        return f"1/{parts[0]}"
    return " ".join([*parts[:-2], "/".join(parts[-2:])])


def _number(values: Values) -> str:
    """``{{val|1.5|e=6|u=kg}}``."""
    power = values.get("e", "")
    return (
        values.get("1", "") + (f"×10{raised(power)}" if power else "") + " " + values.get("u", "")
    ).strip()


TEXT_FUNCTIONS: dict[str, Callable[[Values], str]] = {
    name: function
    for names, function in {
        "bd 生卒年 生卒": _life,
        "convert cvt 轉換 转换": _measure,
        "frac sfrac fraction 分数 分數": _fraction,
        "val nts num": _number,
        "e": lambda values: f"×10{raised(values.get('1', ''))}",
        "sup": lambda values: raised(values.get("1", "")),
        "chem": lambda values: "".join(_places(values)),
        "hlist": lambda values: "、".join(_places(values)),
        "ubl unbulleted-list ordered-list bulleted-list": lambda values: "\n".join(_places(values)),
        "linktext": lambda values: "".join(_places(values)),
        "截至": lambda values: "截至" + "".join(_places(values)),
    }.items()
    for name in names.split()
}


_KNOWN = TEXT_TEMPLATES.keys() | TEXT_FUNCTIONS.keys() | CONSTANTS.keys() | CURRENCIES.keys() | {*_TITLE}
_PREFIXES = (*TEXT_PREFIXES, *_FUNCTIONS)


def _normal(name: str) -> str:
    return name.strip().lower().replace("_", "-").replace(" ", "-")


@functools.lru_cache(1 << 14)
def carries_text(name: str) -> bool:
    """May a template of this name leave anything?"""
    name = _normal(name)
    return name in _KNOWN or name.startswith(_PREFIXES)


def template_text(arguments: list[str], title: str) -> str:
    """What stays of ``{{name|argument|...}}``: the text it carries, or nothing."""
    name = _normal(arguments[0])
    if name in CONSTANTS:
        return CONSTANTS[name]
    if places := TEXT_TEMPLATES.get(name):
        return _first(_parameters(arguments[1:]), places)
    if function := TEXT_FUNCTIONS.get(name):
        values = _parameters(arguments[1:])
        return function(values) if any(values.values()) else ""
    if currency := CURRENCIES.get(name):
        amount = _parameters(arguments[1:]).get("1", "")
        return currency + amount if amount else ""
    if name in _TITLE:
        return title
    if name.startswith(_FUNCTIONS):
        return arguments[0].partition(":")[2].strip()
    for prefix, places in TEXT_PREFIXES.items():
        if name.startswith(prefix):
            return _first(_parameters(arguments[1:]), places)
    return ""
