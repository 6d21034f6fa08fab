"""Bytes of Chinese text to characters: the declared encoding is checked against the bytes."""

from __future__ import annotations

import codecs
import re

# What Python calls an encoding -> the superset of it that browsers read (WHATWG Encoding Standard). Others
# are passed over: servers declare ISO-8859-1 for any page, and some codecs take quadratic time.
_READ_AS = {
    **dict.fromkeys(("gb2312", "gbk", "gb18030"), "gb18030"),
    **dict.fromkeys(("big5", "cp950", "big5hkscs"), "big5hkscs"),
    **dict.fromkeys(("shift_jis", "cp932"), "cp932"),
    **dict.fromkeys(("euc_kr", "cp949"), "cp949"),
    **dict.fromkeys(("utf-16", "utf-16-le"), "utf-16-le"),
    **{name: name for name in ("utf-8", "utf-16-be", "euc_jp")},
}
_PREFIX = re.compile("^(?:x-|cn-)+")  # x-gbk, x-x-big5, cn-big5
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Signs on which Python's big5hkscs differs from the standard (above all ～ between numbers).
_BIG5_SIGNS = str.maketrans("•､‾∼♁☉¥¢£", "‧﹑¯～⊕⊙￥￠￡")

# The most frequent characters of Chinese text in both scripts: about a third of it, and next to nothing of
# wrongly decoded text.
_FREQUENT = re.compile(
    "[的一是不了在人有我他这這个個们們来來上到时時大地为為子中你说說生国國年着就那和要她出也得里後后自以会會家"
    "可下而过過天去能对對小多然于於心学學么麼之都好看起发發当當没沒成只如事把还還用第样樣道想作种種开開美总總"
    "从從无無情己面最女但现現前些所同日手又行意动動方期它头頭经經长長儿兒回位分爱愛老因很给給名法间間知世什两"
    "兩次使身者被高已亲親其进進此话話常与與，。、：“”「」]"
)
_FOREIGN = re.compile("[^\0-\x7f]")
_BROKEN = re.compile("[\ufffd\0\x80-\x9f\ue000-\uf8ff]")  # no text has these: not read, control, private use
_TRUST = 0.1  # what a declaration is worth against the share of frequent characters
MAX_BROKEN = 0.01  # characters; beyond this a text is not worth keeping


def quality(payload: bytes, encoding: str) -> float:
    """From -1 to about 0.4: frequent less broken characters, as a share of those that are not ASCII."""
    text = codecs.getincrementaldecoder(encoding)("replace").decode(payload)
    broken = len(_BROKEN.findall(text))
    size = max(len(_FOREIGN.findall(text)), broken, 1)
    return (len(_FREQUENT.findall(text)) - broken) / size


def characters(payload: bytes, encoding: str, errors: str = "strict") -> str:
    """``payload`` in an encoding that is known to be the right one; ``errors`` as for ``bytes.decode``."""
    text = payload.decode(encoding, errors)
    return text.translate(_BIG5_SIGNS) if encoding == "big5hkscs" else text


def _known(label: str | None) -> str | None:
    """The name of the encoding that a label means to us, or None."""
    try:
        return _READ_AS.get(codecs.lookup(_PREFIX.sub("", (label or "").strip().lower())).name)
    except (LookupError, ValueError):
        return None


def guess_encoding(payload: bytes, *labels: str | None) -> str:
    """The Python name of the encoding in which ``payload`` reads best.

    A byte order mark decides; then UTF-8 where that is valid; then the best reading as Chinese. A declared
    encoding loses to one that reads clearly better (a Big5 page that calls itself GBK, say). ``gb2312`` and
    ``gbk`` mean GB 18030, ``big5`` means Big5-HKSCS.

    Args:
        payload: the bytes or their beginning; the last character may be cut.
        labels: the encodings that are declared for it, if any.
    """
    for mark, encoding in _BYTE_ORDER_MARKS:
        if payload.startswith(mark):
            return encoding
    try:
        codecs.getincrementaldecoder("utf-8")().decode(payload)
        if b"\0" not in payload:
            return "utf-8"
    except UnicodeDecodeError:
        pass
    declared = [name for name in map(_known, labels) if name]
    wide = ["utf-16-le", "utf-16-be"] if b"\0" in payload else []

    def score(encoding: str) -> float:
        return quality(payload, encoding) + (_TRUST if encoding in declared else 0.0)

    return max(dict.fromkeys([*declared, "utf-8", "gb18030", "big5hkscs", *wide]), key=score)


def decode(payload: bytes, *labels: str | None) -> str:
    """``payload`` as text, in the encoding that :func:`guess_encoding` finds, without a byte order mark.

    Lines that are not in this encoding are read in their own (pages put together from two sources); single
    broken bytes become U+FFFD.

    Raises:
        UnicodeError: more than ``MAX_BROKEN`` of the characters cannot be read in any encoding tried.
    """
    encoding = guess_encoding(payload, *labels)
    text = characters(payload, encoding, "replace")
    if "\ufffd" in text and not encoding.startswith("utf-16"):  # in the others b"\n" is part of no character
        lines = payload.split(b"\n")
        text = "\n".join(characters(line, guess_encoding(line, encoding), "replace") for line in lines)
    if text.count("\ufffd") > MAX_BROKEN * len(text):
        raise UnicodeError("the text is in no encoding that we know")
    return text
