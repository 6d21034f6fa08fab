"""Scores of items, 0 to 1: the CMRC 2018 scorer, DRCD's own metric, accuracy; and their mean in percent.

The CMRC 2018 scorer does what ``baseline/cmrc2018_evaluate.py`` of ymcui/cmrc2018 does; a test compares them.
"""

from __future__ import annotations

import re
import string
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

# The marks the official scorer deletes. ASCII brackets, commas and full stops, ‘, … and spaces are not
# among them, which is why `甲(乙)` and `甲乙` differ.
MARKS = frozenset("-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")
_HAN = re.compile("[\u4e00-\u9fa5]")
# DRCD: SQuAD's ASCII punctuation and eight full-width marks (DRCKnowledgeTeam/DRCD#6).
_DRCD_MARKS = frozenset(string.punctuation) | frozenset("《》？，。、；：")

SpanMetric = Callable[[Sequence[str], str], tuple[float, float]]


@cache
def _tokenizer() -> Any:
    """The tokenizer behind nltk's ``word_tokenize``, without the sentence splitter in front of it.

    The splitter needs a download, and changes nothing unless one run between Chinese characters holds several
    sentences. Imported on first use: nltk takes a second, and most tasks never ask for it.
    """
    from nltk.tokenize import NLTKWordTokenizer

    return NLTKWordTokenizer()


@lru_cache(maxsize=65536)
def _words(text: str) -> list[str]:
    return _tokenizer().tokenize(text)


def cmrc_tokens(text: str) -> list[str]:
    """Tokens the CMRC 2018 F1 compares: Chinese characters one by one, words between them; marks deleted.

    A deleted mark does not end a word: ``ω-force`` is one token.
    """
    tokens: list[str] = []
    run = ""
    for char in text.lower().strip():
        if char in MARKS:
            continue
        if _HAN.match(char):
            tokens += _words(run) if run else []
            tokens.append(char)
            run = ""
        else:
            run += char
    return tokens + (_words(run) if run else [])


def longest_common_run(left: Sequence[str], right: Sequence[str]) -> int:
    """Length of the longest common substring (contiguous) of two token sequences.

    Only positions of equal tokens are visited, so the cost follows the number of matches.
    """
    places: dict[str, list[int]] = defaultdict(list)
    for j, token in enumerate(right):
        places[token].append(j)
    best = 0
    lengths: dict[int, int] = {}
    for token in left:
        lengths = {j: lengths.get(j - 1, 0) + 1 for j in places.get(token, ())}
        best = max(best, *lengths.values()) if lengths else best
    return best


def _harmonic(common: int, gold: int, predicted: int) -> float:
    """F1 of ``common`` shared tokens out of ``gold`` and ``predicted``."""
    if common == 0:
        return 0.0
    precision, recall = common / predicted, common / gold
    return 2 * precision * recall / (precision + recall)


def cmrc(answers: Sequence[str], prediction: str) -> tuple[float, float]:
    """Exact match (0 or 1) and F1 (0 to 1) of CMRC 2018 for one prediction, the best over all answers."""

    def bare(text: str) -> str:
        return "".join(char for char in text.lower().strip() if char not in MARKS)

    tokens, text = cmrc_tokens(prediction), bare(prediction)
    golds = [cmrc_tokens(answer) for answer in answers]
    f1 = max(
        (_harmonic(longest_common_run(gold, tokens), len(gold), len(tokens)) for gold in golds), default=0.0
    )
    return float(any(bare(answer) == text for answer in answers)), f1


def drcd(answers: Sequence[str], prediction: str) -> tuple[float, float]:
    """Exact match and F1 of DRCD's own metric: bags of characters, no punctuation or spaces."""

    def bare(text: str) -> str:
        return "".join(char for char in text.lower() if char not in _DRCD_MARKS and not char.isspace())

    def f1(answer: str) -> float:
        common = sum((Counter(answer) & Counter(text)).values())
        return _harmonic(common, len(answer), len(text))

    text = bare(prediction)
    golds = [bare(answer) for answer in answers]
    return float(text in golds), max(map(f1, golds), default=0.0)


SPAN_METRICS: dict[str, SpanMetric] = {"cmrc": cmrc, "drcd": drcd}


def span_items(
    gold: Mapping[str, Sequence[str]], predictions: Mapping[str, str], metric: SpanMetric = cmrc
) -> dict[str, list[float]]:
    """``exact_match`` and ``f1`` (0 to 1) of every gold id in turn; an id without prediction has 0.

    Args:
        gold: id -> all gold answers.
        predictions: id -> answer text.
        metric: one of :data:`SPAN_METRICS`.
    """
    scored = [
        metric(answers, predictions[key]) if key in predictions else (0.0, 0.0)
        for key, answers in gold.items()
    ]
    return {"exact_match": [em for em, _ in scored], "f1": [f1 for _, f1 in scored]}


def task_span_items(
    gold: Mapping[str, Sequence[str]], predictions: Mapping[str, str], own_metric: str = ""
) -> dict[str, list[float]]:
    """:func:`span_items`, and with ``own_metric`` also ``own_exact_match`` and ``own_f1`` by that metric."""
    items = span_items(gold, predictions)
    if own_metric:
        own = span_items(gold, predictions, SPAN_METRICS[own_metric])
        items |= {f"own_{name}": values for name, values in own.items()}
    return items


def label_items(gold: Mapping[str, int], predictions: Mapping[str, int]) -> dict[str, list[float]]:
    """``accuracy`` (0 or 1) of every gold id in turn; an id without prediction counts as wrong."""
    return {"accuracy": [float(predictions.get(key) == label) for key, label in gold.items()]}


def percent(items: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Mean of each metric over its items, in percent; 0 without items."""
    return {metric: 100.0 * sum(values) / len(values) if values else 0.0 for metric, values in items.items()}


def degenerate_labels(gold: Sequence[int], predictions: Sequence[int]) -> str | None:
    """Why a classification run learned nothing; None when it learned something.

    It predicts one class only, or its accuracy is not above always saying the commonest class by more than
    chance explains (one-sided 5 % of the normal approximation to the binomial).
    """
    if len(set(predictions)) == 1 and len(set(gold)) > 1:
        return "predicts one class only"
    total = len(gold)
    share = max(Counter(gold).values()) / total
    accuracy = sum(a == b for a, b in zip(gold, predictions, strict=True)) / total
    return (
        "at chance"
        if accuracy <= share + 1.645 * (share * (1 - share) / total) ** 0.5 and share < 1
        else None
    )


def degenerate_spans(predictions: Sequence[str], exact: Sequence[float]) -> str | None:
    """Why a span run learned nothing: all its predictions are empty, all are one string, or none is right.

    ``exact`` is the exact match of each. Chance finds hardly any answer: a context of 400 tokens has some
    35,000 spans of up to 100.
    """
    if not any(text.strip() for text in predictions):
        return "all predictions are empty"
    if len(predictions) > 1 and len(set(predictions)) == 1:
        return "all predictions are equal"
    return None if any(exact) else "at chance"
