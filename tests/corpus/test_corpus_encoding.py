"""Encodings: what is declared is checked against the bytes; gb2312 means GB 18030, Big5 means Big5-HKSCS."""

import pytest

from corpus.inputs.encoding import decode, guess_encoding

HANS = "我们在城市里的河流边上走了很久，看见许多人在说话。天色渐渐暗了，他们才回家去。"
HANT = "我們在城市裡的河流邊上走了很久，看見許多人在說話。天色漸漸暗了，他們才回家去。"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_byte_order_mark_wins_and_goes(encoding):
    assert decode(HANS.encode(encoding), "gbk") == HANS


@pytest.mark.parametrize(
    ("encoding", "text", "labels"),
    [
        ("utf-8", HANS, ()),
        ("gb2312", HANS, ("gb2312",)),
        ("gbk", HANS + "镕喆", ("GB2312",)),  # GBK characters under the GB 2312 label
        ("gb18030", HANS + "𠮷", ("gbk",)),  # a GB 18030 character under the GBK label
        ("gb18030", HANS, ()),
        ("gbk", HANS, ("x-gbk",)),
        ("gbk", HANT, ()),
        ("big5", HANT, ("x-x-Big5",)),
        ("big5hkscs", HANT + "嘅咗", ("Big5",)),
        ("cp950", HANT + "三～五碁", ()),  # U+FF5E as the standard has it, not U+223C
        ("big5", HANT, ()),
        ("big5", HANT, ("gbk",)),  # wrong declarations
        ("gbk", HANS, ("big5", "utf-8")),
        ("gbk", HANS, ("utf-8",)),
        ("utf-8", HANS, ("gbk",)),
        ("gbk", HANS, ("iso-8859-1",)),  # the default of servers
        ("gbk", HANS, ("no-such", "hex", "punycode", "utf-32", "a\0", "", None)),  # none that we read
        ("utf-16-le", f"<p>{HANS}", ("utf-16",)),
        ("utf-16-be", f"<p>{HANS}", ()),
        ("euc-kr", "한국어 문장을 읽는다. 날씨가 좋다.", ("euc-kr",)),
    ],
)
def test_readings(encoding, text, labels):
    assert decode(text.encode(encoding), *labels) == text


@pytest.mark.parametrize("encoding", ["utf-8", "gb18030", "big5hkscs"])
def test_a_beginning_may_be_cut_within_a_character(encoding):
    payload = HANT.encode(encoding)
    assert {guess_encoding(payload[:cut]) for cut in range(40, len(payload))} == {encoding}


def test_ascii_is_utf8():
    assert guess_encoding(b"<p>plain</p>", "gbk") == "utf-8"
    assert decode(b"") == ""


def test_lines_of_another_encoding():
    lines = [HANS, HANT, HANS]
    mixed = b"\n".join([HANS.encode(), HANT.encode("big5"), HANS.encode("gbk")])
    assert decode(mixed) == decode(mixed, "utf-8") == "\n".join(lines)


def test_few_broken_bytes_are_no_failure():
    broken = (HANS * 20).encode() + b"\xff" + HANS.encode()
    assert decode(broken) == HANS * 20 + "\ufffd" + HANS
    with pytest.raises(UnicodeError):
        decode(b"\xff\xff\x80" * 100)
