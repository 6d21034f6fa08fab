"""Exact duplicates: case 17."""

from corpus.dedup import fingerprint, first_of_each


def test_punctuation_and_space_do_not_count() -> None:
    assert fingerprint("今天下雨。明天晴。") == fingerprint("今天下雨，明天晴")
    assert fingerprint("今天 下雨\n明天晴") == fingerprint("今天下雨，明天晴")


def test_different_texts_stay_apart() -> None:
    assert fingerprint("我喜欢健身") != fingerprint("我喜欢普洱茶")
    assert fingerprint("好") != fingerprint("坏")
    assert fingerprint("第①条") != fingerprint("第1条")  # no NFKC (case 13)


def test_first_of_each_keeps_the_first_over_calls() -> None:
    seen: set[bytes] = set()
    assert first_of_each([b"a", b"b", b"a"], seen) == [True, True, False]
    assert first_of_each([b"b", b"c"], seen) == [False, True]
