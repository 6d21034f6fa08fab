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
from collections.abc import Callable
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
def _marks() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Characters only simplified text uses, and characters only traditional text uses.

    OpenCC would change them, and the other script's national character set lacks them. The second
    condition removes characters both scripts use (后, 里, 只, 云).
    """
    to_traditional, to_simplified = opencc.OpenCC("s2t"), opencc.OpenCC("t2s")
    characters = [chr(code) for code in _TELLING]
    hans = [c for c in characters if to_traditional.convert(c) != c and not _in_charset(c, "big5")]
    hant = [c for c in characters if to_simplified.convert(c) != c and not _in_charset(c, "gb2312")]
    return re.compile(f"[{''.join(hans)}]"), re.compile(f"[{''.join(hant)}]")


def script_of(text: str) -> str:
    """``hans``, ``hant``, ``mixed`` (each script has at least a tenth of the telling characters) or ``none``.

    ``none``: no character tells the scripts apart (no Han text, or only shared characters).
    """
    simplified, traditional = _marks()
    hans, hant = len(simplified.findall(text)), len(traditional.findall(text))
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
