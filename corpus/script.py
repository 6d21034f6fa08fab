"""Simplified or traditional: which script a text is in, and conversion by OpenCC when asked for.

The default of a corpus is no conversion: traditional characters that are never trained cost accuracy on
traditional text (DRCD).
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import re
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import opencc

from provenance import UserError

MIXED_SHARE = 0.1  # of the characters that tell the scripts apart, the share of the rarer script
_TELLING = range(0x4E00, 0xA000)  # rarer Han characters tell the scripts apart too seldom to be looked at

HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
LETTER = re.compile(r"[^\W\d_]")  # of any script, Han among them


# The code units of HAN in UTF-16: the first unit of each range and how many it has. The last one is
# the first halves of the characters from U+20000 to U+3FFFF.
_HAN_UNITS = [
    (np.uint16(first), np.uint16(size))
    for first, size in ((0x3400, 0x19C0), (0x4E00, 0x5200), (0xF900, 0x200), (0xD840, 0x80))
]
_SHORT = 200  # characters; below this numpy costs more than it saves


def count_han(text: str) -> int:
    """Number of Han characters: what ``HAN`` finds, at several times its speed in long texts."""
    if len(text) < _SHORT:
        return len(HAN.findall(text))
    try:
        units = np.frombuffer(text.encode("utf-16-le"), dtype=np.uint16)
    except UnicodeEncodeError:  # lone surrogates
        return len(HAN.findall(text))
    return sum(int(np.count_nonzero(units - first < size)) for first, size in _HAN_UNITS)


def _in_charset(character: str, charset: str) -> bool:
    try:
        character.encode(charset)
    except UnicodeEncodeError:
        return False
    return True


@functools.cache
def _marks() -> np.ndarray:
    """uint8 (1114112,): 1 for characters only simplified text uses, 2 for those only traditional text uses.

    OpenCC would change them, and the other script's national character set lacks them. The second
    condition removes characters both scripts use (后, 里, 只, 云).
    """
    to_traditional, to_simplified = opencc.OpenCC("s2t"), opencc.OpenCC("t2s")
    marks = np.zeros(0x110000, dtype=np.uint8)
    for code in _TELLING:
        character = chr(code)
        if to_traditional.convert(character) != character and not _in_charset(character, "big5"):
            marks[code] = 1
        elif to_simplified.convert(character) != character and not _in_charset(character, "gb2312"):
            marks[code] = 2
    return marks


def main_script(text: str) -> str:
    """``hant`` if most of the characters that tell the scripts apart are traditional, else ``hans``."""
    marks = _marks()[np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)]
    return "hant" if np.count_nonzero(marks == 2) > np.count_nonzero(marks == 1) else "hans"


def script_of(text: str) -> str:
    """``hans``, ``hant``, ``mixed`` (each script has at least a tenth of the telling characters) or ``none``.

    ``none``: no character tells the scripts apart (no Han text, or only shared characters).
    """
    return scripts_of([text])[0]


def scripts_of(texts: Sequence[str]) -> list[str]:
    """:func:`script_of` of each text, many at once."""
    codes = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    marks = _marks()[codes]
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    counts = []
    for mark in (1, 2):
        places = np.flatnonzero(marks == mark)
        counts.append(np.diff(np.searchsorted(places, ends), prepend=0).tolist())
    return [_script(hans, hant) for hans, hant in zip(*counts, strict=True)]


def _script(hans: int, hant: int) -> str:
    if hans + hant == 0:
        return "none"
    if min(hans, hant) >= MIXED_SHARE * (hans + hant):
        return "mixed"
    return "hans" if hans > hant else "hant"


def _data_folder() -> Path:
    return Path(opencc.__file__).parent / "clib" / "share" / "opencc"


def available() -> list[str]:
    """Names of the OpenCC configurations this installation has."""
    return sorted(path.stem for path in _data_folder().glob("*.json"))


@functools.cache
def converter(config: str) -> Callable[[str], str]:
    """The conversion function of an OpenCC configuration; ``t2s`` and ``t2s.json`` are the same to OpenCC.

    Warns for conversions towards traditional script, which are one-to-many and misfire.

    Raises:
        UserError: no such configuration (those present are listed), or another package answers to ``opencc``.
    """
    name = config.removesuffix(".json")
    if not hasattr(opencc, "__version__") or not _data_folder().is_dir():
        raise UserError("another package shadows OpenCC; run `pip install --force-reinstall opencc`")
    if name not in available():
        raise UserError(f"OpenCC has no conversion {name!r}; choose one of {', '.join(available())}")
    if name.startswith("s2"):
        warnings.warn(
            f"{name} guesses between several traditional characters and is often wrong", stacklevel=2
        )
    convert: Callable[[str], str] = opencc.OpenCC(name).convert
    return convert


def conversion_facts(config: str) -> dict[str, Any]:
    """What a conversion depends on, for the manifest: its results change with the version."""
    if config == "none":
        return {"convert": "none"}
    digest = hashlib.sha256()
    for path in sorted(_data_folder().iterdir()):
        if path.is_file():
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return {
        "convert": config.removesuffix(".json"),
        "opencc": importlib.metadata.version("opencc"),
        "dictionaries_sha256": digest.hexdigest(),
    }
