"""Script detection and conversion: cases 1, 3, 4, 5, 6 and 7."""

import pytest

from corpus.config import PRESETS
from corpus.script import HAN, available, conversion_facts, converter, count_han, script_of
from provenance import UserError


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("臺灣的颱風", "hant"),
        ("软件与电脑", "hans"),
        ("他把計算機放在后面的里屋", "hant"),  # 后 and 里 belong to both scripts
        ("发展中的電腦，简体與繁體", "mixed"),
        ("今天下雨", "none"),
        ("abc 123", "none"),
        ("", "none"),
    ],
)
def test_script_of(text: str, script: str) -> None:
    assert script_of(text) == script


def test_default_converts_nothing() -> None:
    """Case 1."""
    assert {config.convert for config in PRESETS.values()} == {"none"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("乾隆皇帝", "乾隆皇帝"),
        ("乾燥的餅乾", "干燥的饼干"),
        ("皇后在後宮", "皇后在后宫"),
        ("頭髮發現", "头发发现"),
        ("鄰里與裡面", "邻里与里面"),
        ("乾安縣", "乾安县"),  # 干安县 in older versions of OpenCC
        ("看著", "看著"),
        ("睡著了", "睡著了"),  # case 5: t2s is not the Taiwan configuration
        ("衞", "衞"),
        ("他買了記憶體", "他买了记忆体"),  # case 6: no phrases, so no length changes
    ],
)
def test_t2s(text: str, expected: str) -> None:
    """Cases 4, 5 and 6."""
    assert converter("t2s")(text) == expected


@pytest.mark.parametrize(
    ("config", "text", "expected"),
    [
        ("tw2s", "睡著了", "睡着了"),
        ("tw2sp", "看著", "看着"),
        ("tw2sp", "記憶體", "内存"),  # case 6: phrases change the length, so no answer would be where it was
        ("tw2sp", "計程車", "出租车"),
        ("tw2sp", "計算機程序", "计算机进程"),
    ],
)
def test_taiwan_configurations_differ(config: str, text: str, expected: str) -> None:
    """Cases 5 and 6."""
    assert converter(config)(text) == expected


def test_json_suffix_is_the_same_configuration() -> None:
    """Case 7."""
    assert converter("t2s.json")("臺灣") == converter("t2s")("臺灣") == "台湾"


def test_unknown_configuration_lists_the_available_ones() -> None:
    """Case 7."""
    with pytest.raises(UserError, match="t2s") as error:
        converter("s2twp_jieba")
    assert all(name in str(error.value) for name in available())


@pytest.mark.parametrize(
    ("config", "text", "wrong"),
    [
        ("s2twp", "勇敢的士兵", "勇敢計程車兵"),
        ("s2t", "一个中年人", "一箇中年人"),
        ("s2t", "我是只有一个", "我是隻有一個"),
    ],
)
def test_towards_traditional_warns_and_misfires(config: str, text: str, wrong: str) -> None:
    """Case 3: known bad outputs of OpenCC 1.4.2, behind a warning."""
    converter.cache_clear()
    with pytest.warns(UserWarning, match=config):
        convert = converter(config)
    assert convert(text) == wrong


@pytest.mark.filterwarnings("ignore:.*s2t")
def test_a_round_trip_loses_characters() -> None:
    """Case 3."""
    there = converter("t2s")("皇后在後面發現頭髮乾了")
    assert converter("s2t")(there) == "皇后在後面發現頭髮幹了"


def test_conversion_facts_name_version_and_dictionaries() -> None:
    """Case 4: results depend on the version."""
    assert conversion_facts("none") == {"convert": "none"}
    facts = conversion_facts("t2s.json")
    assert facts["convert"] == "t2s"
    assert facts["opencc"]
    assert len(facts["dictionaries_sha256"]) == 64


def test_count_han_is_what_the_pattern_finds() -> None:
    """Every code point, lone surrogates among them, short and long texts."""
    for first in range(0, 0x110000, 0x1000):
        text = "".join(map(chr, range(first, first + 0x1000)))
        assert count_han(text) == len(HAN.findall(text)), hex(first)
    mixed = "".join(map(chr, range(0, 0x40000, 7)))
    for size in (0, 1, 199, 200, 201, 5000):
        assert count_han(mixed[-size:]) == len(HAN.findall(mixed[-size:]))
    assert count_han("\ud840\udc00" * 200) == 0  # two surrogates are no character
