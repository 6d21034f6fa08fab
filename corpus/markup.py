"""What the marks of wikitext mean: links, templates and language variants, as data and small functions."""

from __future__ import annotations

import re

from corpus.brackets import GAP


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


DROPPED_TAGS = _words(  # elements whose content is not prose
    """math chem ce code pre syntaxhighlight source gallery timeline score graph mapframe maplink imagemap
    inputbox templatedata templatestyles hiero categorytree indicator includeonly rt rp style script"""
)
NEWLINE_TAGS = _words("br p poem blockquote li dd dt tr")


def without_comments(text: str) -> str:
    """``text`` without ``<!-- -->``; an unclosed comment loses its mark only."""
    pieces: list[str] = []
    position = 0
    while (start := text.find("<!--", position)) >= 0:
        end = text.find("-->", start + 4)
        if end < 0:
            return "".join(pieces) + text[position:].replace("<!--", "")
        pieces.append(text[position:start])
        position = end + 3
    return "".join(pieces) + text[position:]


# --- links ----------------------------------------------------------------------------------------

DROPPED_NAMESPACES = _words(
    "file image media category 文件 檔案 档案 图像 圖像 图片 圖片 媒体 媒體 媒体文件 分类 分類"
)
# Prefixes of other language editions; a link to one (without a leading colon) is no part of the text.
LANGUAGES = _words(
    """aa ab ace ady af ak als am an ang ar arc arz as ast av ay az ba bar bcl be be-tarask be-x-old bg bh
    bi bm bn bo bpy br bs bug bxr ca cbk-zam cdo ce ceb ch chr chy ckb co cr crh cs csb cu cv cy da
    de diq dsb dv dz ee el eml en eo es et eu ext fa ff fi fiu-vro fj fo fr frp frr fur fy ga gag
    gan gd gl glk gn got gu gv ha hak haw he hi hif hr hsb ht hu hy ia id ie ig ik ilo io is it iu
    ja jbo jv ka kaa kab kbd kg ki kk kl km kn ko koi krc ks ksh ku kv kw ky la lad lb lbe lez lg li
    lij lmo ln lo lt ltg lv mai map-bms mdf mg mhr mi min mk ml mn mr mrj ms mt mwl my myv mzn na
    nah nan nap nds nds-nl ne new ng nl nn no nov nrm nso nv ny oc om or os pa pag pam pap pcd pdc
    pfl pi pih pl pms pnb pnt ps pt qu rm rmy rn ro roa-rup roa-tara ru rue rw sa sah sc scn sco sd
    se sg sh si simple sk sl sm sn so sq sr srn ss st stq su sv sw szl ta te tet tg th ti tk tl tn
    to tpi tr ts tt tum tw ty udm ug uk ur uz ve vec vep vi vls vo wa war wo wuu xal xh xmf yi yo za
    zea zh zh-classical zh-min-nan zh-yue zu"""
)


def link_text(arguments: list[str]) -> str:
    """The visible text of ``[[target|label]]``, empty for files, categories and other languages' editions."""
    if "\n" in arguments[0].strip():  # a target is one line: this was an unclosed link before another's end
        return "|".join(arguments)
    target = arguments[0].strip()
    prefix, colon, rest = target.partition(":")
    if colon and (prefix.strip().lower() in DROPPED_NAMESPACES or prefix in LANGUAGES):
        return ""
    if len(arguments) > 1 and (label := "|".join(arguments[1:])).strip():
        return label
    if len(arguments) > 1:  # the pipe trick: namespace and parenthesis are not shown
        return re.sub(r"[\s_]*[(（][^()（）]*[)）]$", "", rest if colon else target)
    return target.removeprefix(":")


def external_text(content: str) -> str:
    """The label of ``[address label]``, empty where there is none."""
    address, _, label = content.partition(" ")
    return content if "\n" in address else label.lstrip()


# --- templates ------------------------------------------------------------------------------------

# Templates that carry text: the parameters to look in, the first that is not empty is taken.
TEXT_TEMPLATES: dict[str, tuple[str, ...]] = {
    name: parameters
    for names, parameters in {
        # formatting
        "nowrap nobr small smaller big bigger large em strong sub sup underline nobold noitalic kbd": ("1",),
        "tl tlx ruby abbr tooltip circa val nts num formatnum 僻字 專名 专名 書名 书名 lj jpn zhi": ("1",),
        "nihongo nihongo2 flag flagcountry country 旗幟": ("1",),
        "lang lang2 transl color colored fontcolor font-color colortext font-size hover": ("2", "text", "1"),
        "quote cquote quotation bquote quotebox blockquote tq": ("text", "quote", "content", "1"),
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
}
CONSTANTS = {"!": "|", "=": "=", "·": "·", "•": "•", "spaced-ndash": " – ", "snd": " – ", "—": "——"}
_NAMED = re.compile(r"\s*([^\s=<>\[\]{}]{1,40})\s*=")


def _value(argument: str) -> str:
    return argument.strip() if argument.strip(f" \t\n{GAP}") else ""


def _parameters(arguments: list[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    place = 0
    for argument in arguments:
        if named := _NAMED.match(argument):
            values[named[1]] = _value(argument[named.end() :])
        else:
            place += 1
            values[str(place)] = _value(argument)
    return values


def _life(values: dict[str, str]) -> str:
    """``{{bd|1893年|12月26日|1976年|9月9日}}``, the dates after a person's name."""
    first, second, third = (values.get(place, "") for place in "123")
    if second.endswith("年") and not third:  # two years without days
        return f"{GAP}（{first}－{second}）"
    born, died = first + second, third + values.get("4", "")
    return f"{GAP}（{born}－{died}）" if born or died else ""


def template_text(arguments: list[str], title: str) -> str:
    """What stays of ``{{name|argument|...}}``: the text it carries, or nothing."""
    name = arguments[0].strip().lower().replace("_", "-").replace(" ", "-")
    if name in CONSTANTS:
        return CONSTANTS[name]
    if name in ("pagename", "fullpagename", "subpagename"):
        return title
    if name.startswith("formatnum:"):
        return arguments[0].partition(":")[2].strip()
    places = TEXT_TEMPLATES.get(name)
    if places is None:
        places = next((p for prefix, p in TEXT_PREFIXES.items() if name.startswith(prefix)), None)
    if places is not None:
        values = _parameters(arguments[1:])
        return next((values[place] for place in places if values.get(place)), "")
    if name in ("bd", "生卒年", "生卒"):
        return _life(_parameters(arguments[1:]))
    if name in ("convert", "cvt"):
        values = _parameters(arguments[1:])
        return values.get("1", "") + values.get("2", "")
    return ""


# --- language variants ----------------------------------------------------------------------------

VARIANTS = {
    "hans": ("zh-hans", "zh-cn", "zh-sg", "zh-my", "zh"),
    "hant": ("zh-hant", "zh-tw", "zh-hk", "zh-mo", "zh"),
}
_RULE = re.compile(r"(?:^|;)\s*(?:([^;=]*)=>)?\s*(zh(?:-[a-z]+)*)\s*:", re.IGNORECASE)
_FLAG = re.compile(r"\s*([a-zA-Z-]*(?:\s*;\s*[a-zA-Z-]+)*)\s*;?\s*$")
_SILENT = {"H", "T", "D", "N", "-"}  # rules, titles, descriptions and names: nothing to read in place


def variant_text(content: str, script: str) -> str:
    """The side of ``-{content}-`` that ``script`` reads; the first side where none is meant for it.

    Flags as in MediaWiki's language converter: ``H`` and ``T`` show nothing; ``A``, ``R`` and variant names
    (``-{zh-hans;zh-hant|text}-``) show the text.
    """
    flags, bar, body = content.partition("|")
    if bar and (flag := _FLAG.match(flags)):
        if {part.strip().upper() for part in flag[1].split(";")} & _SILENT:
            return ""
        content = body
    rules = list(_RULE.finditer(content))
    if not rules or content[: rules[0].start()].strip():
        return content
    sides: dict[str, str] = {}
    for rule, following in zip(rules, [*rules[1:], None], strict=True):
        value = content[rule.end() : following.start() if following else len(content)]
        sides.setdefault(rule[2].lower(), value.strip().removesuffix(";").rstrip())
    for variant in VARIANTS.get(script, VARIANTS["hans"]):
        if variant in sides:
            return sides[variant]
    return (rules[0][1] or "").strip() or next(iter(sides.values()))
