"""Features of questions and contexts: tokens, offsets, windows, decoding."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from finetune import span
from finetune.config import FinetuneConfig
from finetune.examples import SpanExample
from finetune.tokens import Encoder, load_encoder
from provenance import UserError

CONFIG = FinetuneConfig(1e-3, max_length=512, max_answer_length=100)


def tokens(encoder: Encoder, text: str) -> list[str]:
    return encoder.encode([text])[0].tokens


def best(start: int, end: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Logits of a row that are certain of the tokens ``start`` and ``end``."""
    pair = np.zeros((2, length), dtype=np.float32)
    pair[0, start] = pair[1, end] = 50.0
    return pair[0], pair[1]


def predict(encoder: Encoder, context: str, first: int, last: int) -> str:
    """The text for the tokens ``first`` to ``last`` of ``context``."""
    example = SpanExample("q", "问", context)
    features = span.encode([example], encoder, CONFIG, training=False)
    (window,) = features.windows
    logits = best(window.prefix + first, window.prefix + last, len(window.row[0]))
    return span.predictions([example], features, [logits], 100)[0]["prediction"]


# --- tokenizer ------------------------------------------------------------------------------------


def test_quotes_and_ellipsis_are_unknown_with_one_character_each(encoder: Encoder) -> None:
    encoding = encoder.encode(["他说“好”……"])[0]
    assert encoding.tokens == ["他", "说", "[UNK]", "好", "[UNK]", "[UNK]", "[UNK]"]
    assert encoding.offsets == [(i, i + 1) for i in range(7)]


def test_text_makes_no_special_token(encoder: Encoder) -> None:
    """As in Google's tokenization: brackets and letters, each where it stands."""
    encoding = encoder.encode(["甲[SEP]乙[MASK]"])[0]
    assert encoding.tokens[:4] == ["甲", "[", "sep", "]"]
    assert encoding.offsets[:4] == [(0, 1), (1, 2), (2, 5), (5, 6)]
    assert not set(encoding.ids) & set(encoder.tokenizer.all_special_ids)


def test_quotes_can_be_read_as_ascii_without_moving_anything(tiny_model: Path) -> None:
    """One character for one; the answer is still cut from the original text (case 21)."""
    mapped = load_encoder(tiny_model, map_quotes=True)
    encoding = mapped.encode(["他说“好”——‘是’…"])[0]
    assert encoding.tokens == ["他", "说", '"', "好", '"', "-", "-", "'", "是", "'", "[UNK]"]
    assert encoding.offsets == [(i, i + 1) for i in range(11)]
    assert predict(mapped, "他说“好”", 2, 4) == "“好”"


def test_answer_keeps_the_case_of_the_context(encoder: Encoder) -> None:
    """The vocabulary is uncased, but answers are cut from the context."""
    assert tokens(encoder, "苹果iPhone X发布") == ["苹", "果", "iphone", "x", "发", "布"]
    assert predict(encoder, "苹果iPhone X发布", 2, 3) == "iPhone X"


def test_accents_are_stripped(encoder: Encoder) -> None:
    """As the lower-casing BERT tokenizer does."""
    assert tokens(encoder, "がぎ") == ["か", "##き"]
    assert tokens(encoder, "Café") == ["cafe"]
    decomposed = encoder.encode(["e\u0301"])[0]
    assert (decomposed.tokens, decomposed.offsets) == (["e"], [(0, 1)])


def test_symbols_and_kana_glue(encoder: Encoder) -> None:
    """Symbols that are not Chinese stay in one word, so that a token can end inside what looks like two."""
    assert tokens(encoder, "①②") == ["①", "##②"]
    assert len(tokens(encoder, "35㎡")) == 2
    assert tokens(encoder, "鐵𫚭魚ラピュタ")[:3] == ["鐵", "[UNK]", "魚"]


def test_without_stripping_accents_kana_is_unknown(vocab_path: Path) -> None:
    """What an export that forgets `strip_accents` would do."""
    import tokenizers

    kept = tokenizers.BertWordPieceTokenizer(str(vocab_path), lowercase=True, strip_accents=False)
    for text in ("がぎ", "ラピュタ"):
        assert kept.encode(text, add_special_tokens=False).tokens == ["[UNK]"]


def test_no_joined_chinese_piece_is_ever_produced(encoder: Encoder) -> None:
    """7,321 of the 21,128 entries are such pieces: Chinese characters are isolated before WordPiece."""
    pieces = tokens(encoder, "中文ABC中文123中文，臺灣大學２０２４年")
    assert not [p for p in pieces if p.startswith("##") and "\u4e00" <= p[2] <= "\u9fff"]


def test_unknown_characters_come_back(encoder: Encoder) -> None:
    assert tokens(encoder, "鐵𫚭魚") == ["鐵", "[UNK]", "魚"]
    assert predict(encoder, "鐵𫚭魚", 1, 1) == "𫚭"


def test_answers_inside_a_token_are_widened_and_counted(encoder: Encoder) -> None:
    """A token can span more characters than the answer."""
    context = "使用HRB400Φ16钢筋"
    counts: Counter[str] = Counter()
    example = SpanExample("q", "哪种？", context, ("40",), context.index("40"))
    (window,) = span.encode([example], encoder, CONFIG, training=True, counts=counts).windows
    assert counts["snapped"] == 1
    (prediction,) = span.oracle([example], encoder, CONFIG)
    assert "40" in prediction["prediction"]
    assert window.target != (0, 0)


# --- windows --------------------------------------------------------------------------------------


def test_windows_go_by_step_not_by_overlap() -> None:
    """As google-research/electra: 600 tokens of context, a question of 20, length 512, step 128."""
    assert 512 - 20 - 3 == 489
    assert span.window_starts(600, 489, 128) == [0, 128]
    assert span.window_starts(489, 489, 128) == [0]
    assert span.window_starts(618, 489, 128) == [0, 128, 256]
    assert span.window_starts(0, 489, 128) == [0]


def test_windows_of_a_long_context(encoder: Encoder) -> None:
    """Through the tokenizer: rows, positions of the answer, and the window without it."""
    context = "天" * 550 + "地" + "天" * 49
    example = SpanExample("q", "问" * 20, context, ("地",), 550)
    counts: Counter[str] = Counter()
    windows = span.encode([example], encoder, CONFIG, training=True, counts=counts).windows
    assert [(w.first, w.length, w.prefix) for w in windows] == [(0, 489, 22), (128, 472, 22)]
    assert [len(w.row[0]) for w in windows] == [512, 495]
    assert [w.target for w in windows] == [(0, 0), (550 - 128 + 22, 550 - 128 + 22)]
    assert counts["windows_without_answer"] == 1
    assert sum(int(w.may_start.sum()) for w in windows) == 600


def test_a_token_belongs_to_the_window_with_most_context() -> None:
    """Windows 0-9 and 5-14 over 15 tokens: token 7 has 2 tokens on its right in one, 2 on its left."""
    best_window = span.most_context(15, [0, 5], 10)
    assert best_window.tolist() == [0] * 8 + [1] * 7


def test_questions_are_cut_at_64_tokens(encoder: Encoder) -> None:
    example = SpanExample("q", "问" * 90, "天地", ("地",), 1)
    counts: Counter[str] = Counter()
    (window,) = span.encode([example], encoder, CONFIG, training=True, counts=counts).windows
    assert window.prefix == 1 + 64 + 1
    assert counts["questions_cut"] == 1


def test_no_room_for_the_context(encoder: Encoder) -> None:
    with pytest.raises(UserError, match="max-length"):
        span.encode([], encoder, replace(CONFIG, max_length=67), training=False)


def test_unalignable_answers_are_left_out_of_training_only(encoder: Encoder) -> None:
    examples = [
        SpanExample("a", "问", "天地", ("39764.0",), None),
        SpanExample("b", "问", "天地", ("天",), 0),
    ]
    counts: Counter[str] = Counter()
    assert len(span.encode(examples, encoder, CONFIG, training=True, counts=counts).windows) == 1
    assert counts["unalignable"] == 1
    assert len(span.encode(examples, encoder, CONFIG, training=False).windows) == 2


# --- decoding -------------------------------------------------------------------------------------


def test_second_occurrence_is_kept(encoder: Encoder) -> None:
    """The answer's place, not the first place of its text."""
    context = "周五去，周五回"
    example = SpanExample("q", "何时回？", context, ("周五",), 4)
    features = span.encode([example], encoder, CONFIG, training=True)
    (window,) = features.windows
    first, last = (position - window.prefix for position in window.target)
    assert (features.contexts[0].starts[first], features.contexts[0].ends[last]) == (4, 6)


def test_astral_characters_before_the_answer(encoder: Encoder) -> None:
    """Python indices, one for 𠮷."""
    (prediction,) = span.oracle([SpanExample("q", "谁？", "𠮷田說好", ("說",), 2)], encoder, CONFIG)
    assert prediction["prediction"] == "說"


def test_answer_length_limit(encoder: Encoder) -> None:
    """40 characters come back with a limit of 100 and not with one of 30."""
    gold = "".join(chr(0x4E00 + 7 * i) for i in range(40))
    example = SpanExample("q", "问", "前面，" + gold + "。后面", (gold,), 3)
    assert span.oracle([example], encoder, CONFIG)[0]["prediction"] == gold
    short = span.oracle([example], encoder, replace(CONFIG, max_answer_length=30))[0]["prediction"]
    assert short != gold
    assert len(short) <= 30


def test_oracle_over_windows(encoder: Encoder) -> None:
    """Perfect logits give every gold text back, wherever it lies in a context of several windows."""
    context = "".join(chr(0x4E00 + i) for i in range(1500))
    examples = [SpanExample(str(s), "问", context, (context[s : s + 20],), s) for s in range(0, 1480, 37)]
    for example, prediction in zip(examples, span.oracle(examples, encoder, CONFIG), strict=True):
        assert prediction["prediction"] == example.answers[0]


def test_best_spans_equal_a_plain_search() -> None:
    """Against the double loop, with ties absent."""
    random = np.random.default_rng(0)
    for size in (1, 3, 17, 60):
        start, end = random.normal(size=(2, size)).astype(np.float32)
        allowed = random.random(size) < 0.7
        plain = sorted(
            (
                (float(start[s] + end[e]), s, e)
                for s in range(size)
                if allowed[s]
                for e in range(s, min(size, s + 8))
            ),
            reverse=True,
        )[:10]
        found = span.best_spans(start, end, allowed, 8, 10)
        assert [(s, e) for _, s, e in found] == [(s, e) for _, s, e in plain]


def test_n_best_is_sorted_and_without_repeats(encoder: Encoder) -> None:
    example = SpanExample("q", "问", "天天天地")
    features = span.encode([example], encoder, CONFIG, training=False)
    logits = [tuple(np.random.default_rng(0).normal(size=(2, len(w.row[0])))) for w in features.windows]
    (prediction,) = span.predictions([example], features, logits, 100)
    texts = [entry["text"] for entry in prediction["n_best"]]
    scores = [entry["score"] for entry in prediction["n_best"]]
    assert len(set(texts)) == len(texts)
    assert scores == sorted(scores, reverse=True)
    assert prediction["prediction"] == texts[0]


def test_empty_context_gives_an_empty_prediction(encoder: Encoder) -> None:
    assert span.oracle([SpanExample("q", "问", "")], encoder, CONFIG)[0]["prediction"] == ""


@pytest.mark.real
def test_oracle_on_cmrc_dev(real_data: Path, encoder: Encoder) -> None:
    """Windows, offsets and decoding lose nothing of real contexts but widened and overlong answers."""
    import json

    data = json.loads((real_data / "tasks/cmrc2018/dev.json").read_text("utf-8"))["data"]
    examples = []
    for paragraph in (p for article in data for p in article["paragraphs"]):
        for qa in paragraph["qas"]:
            text = qa["answers"][0]["text"]
            start = paragraph["context"].find(text)
            examples.append(
                SpanExample(
                    qa["id"], qa["question"], paragraph["context"], (text,), start if start >= 0 else None
                )
            )
    examples = [example for example in examples if example.start is not None][:800]
    counts: Counter[str] = Counter()
    span.encode(examples, encoder, CONFIG, training=False, counts=counts)
    found = span.oracle(examples, encoder, CONFIG)
    wrong = sum(p["prediction"] != e.answers[0] for p, e in zip(found, examples, strict=True))
    assert wrong <= counts["snapped"] + 1
