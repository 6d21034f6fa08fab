"""What the marks of wikitext mean: links, tables and language variants, as data and small functions."""

from __future__ import annotations

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


LITERAL_TAGS = _words(  # elements whose content is neither prose nor wikitext
    "pre syntaxhighlight source timeline score graph mapframe maplink inputbox templatedata style script"
)
DROPPED_TAGS = LITERAL_TAGS | _words(  # elements whose content is not prose
    "math chem ce gallery imagemap templatestyles hiero categorytree indicator includeonly rt rp"
)
NEWLINE_TAGS = _words("br p poem blockquote li dd dt")


HEADING = r"\n(?==[^\n{}]*=[ \t]*(?:\n|\Z))"  # a pattern: the line break before a heading


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

FILE_NAMESPACES = _words("file image media 文件 檔案 档案 图像 圖像 图片 圖片 媒体 媒體 媒体文件")
DROPPED_NAMESPACES = FILE_NAMESPACES | _words("category 分类 分類")
_OPTION = re.compile(r"\s*(?:alt|link|page|lang|class|替代文本|替代|链接|連結)\s*=")
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
    """The visible text of ``[[target|label]]``, empty for categories and other languages' editions.

    Of a file its caption, on a line of its own, where that is a sentence.
    """
    if "\n" in arguments[0].strip():  # a target is one line: this was an unclosed link before another's end
        return "|".join(arguments)
    target = arguments[0].strip()
    prefix, colon, rest = target.partition(":")
    if colon and prefix in LANGUAGES:
        return ""
    if colon and (namespace := prefix.strip().lower()) in DROPPED_NAMESPACES:
        caption = arguments[-1] if namespace in FILE_NAMESPACES and len(arguments) > 1 else ""
        return f"\n{caption}\n" if SENTENCE in caption and not _OPTION.match(caption) else ""
    if len(arguments) > 1 and (label := "|".join(arguments[1:])).strip():
        return label
    if len(arguments) > 1:  # the pipe trick: namespace and parenthesis are not shown
        return re.sub(r"[\s_]*[(（][^()（）]*[)）]$", "", rest if colon else target)
    return target.removeprefix(":")


def external_text(content: str) -> str:
    """The label of ``[address label]``, empty where there is none."""
    address, _, label = content.partition(" ")
    return content if "\n" in address else label.lstrip()


# --- tables ---------------------------------------------------------------------------------------

# What stands outside the running text (a table's cell, an image's caption) stays where it is a sentence.
SENTENCE = "。"
_CELL = re.compile(r"\n[ \t]*(?:\|[-+}]?|!)|\|\||!!")
_ATTRIBUTES = re.compile(r"\A[^|=\n。]*=[^|\n。]*\|")


def table_text(content: str) -> str:
    """The cells that hold sentences, each from a line of its own; of tables of names and numbers nothing.

    Args:
        content: all between ``{|`` and ``|}``, with the marks inside resolved.
    """
    if SENTENCE not in content:
        return ""
    cells = [cell for cell in _CELL.split(content)[1:] if SENTENCE in cell]
    return "\n".join(_ATTRIBUTES.sub("", cell).strip(" \t|") for cell in cells)


# --- language variants ----------------------------------------------------------------------------

VARIANTS = {
    "hans": ("zh-hans", "zh-cn", "zh-sg", "zh-my", "zh"),
    "hant": ("zh-hant", "zh-tw", "zh-hk", "zh-mo", "zh"),
}
_RULE = re.compile(r"(?:^|;)\s*+(?:([^;=]*+)=>\s*+)?(zh(?:-[a-z]+)*+)\s*+:", re.IGNORECASE)
_ENTITY_LAST = re.compile(r"&#?\w+;\Z")
_SILENT = {"H", "T", "D", "N", "-"}  # rules, titles, descriptions and names: nothing to read in place


def variant_text(content: str, script: str) -> str:
    """The side of ``-{content}-`` that ``script`` reads; the first side where none is meant for it.
    Flags as in MediaWiki's language converter: ``H`` and ``T`` show nothing; ``A``, ``R`` and variant names
    (``-{zh-hans;zh-hant|text}-``) show the text.
    """
    flags, bar, body = content.partition("|")
    if bar and "\n" not in flags:
        if not _SILENT.isdisjoint(part.strip().upper() for part in flags.split(";")):
            return ""
        content = body
    if ":" not in content:
        return content
    rules = list(_RULE.finditer(content))
    if not rules or content[: rules[0].start()].strip():
        return content
    sides: dict[str, str] = {}
    for rule, following in zip(rules, [*rules[1:], None], strict=True):
        value = content[rule.end() : following.start() if following else len(content)].strip()
        if not _ENTITY_LAST.search(value):
            value = value.removesuffix(";").rstrip()
        sides.setdefault(rule[2].lower(), value)
    for variant in VARIANTS.get(script, VARIANTS["hans"]):
        if variant in sides:
            return sides[variant]
    return (rules[0][1] or "").strip() or next(iter(sides.values()))
