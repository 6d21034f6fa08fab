"""Extraction of answers from a context: windows, training targets, and decoding back to characters.

The answer's characters are mapped to tokens by the tokenizer's offsets, and the predicted tokens back to
characters by the same offsets, so that the text is always a piece of the original context and a second
occurrence is never mistaken for the first. The head is transformers' two linear outputs per token.

As in ELECTRA's own code, a training window that does not hold the whole answer is kept, with the first
token ([CLS]) as its start and end; a prediction is made only from context tokens, and a token may begin
an answer only in the window that shows it with the most context on both sides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from finetune.config import FinetuneConfig
from finetune.examples import SpanExample
from finetune.tokens import Encoder, Tokens
from provenance import UserError

N_BEST = 10  # answers kept for each question
NEVER = -1e9


@dataclass(frozen=True)
class Window:
    """One input row: ``length`` tokens of the context of example ``example``, from its token ``first`` on.

    ``prefix`` is the position in the row of the first of them; ``target`` is the positions of the answer's
    first and last token, (0, 0) where the window does not hold them all.
    """

    example: int
    first: int
    length: int
    prefix: int
    row: tuple[np.ndarray, np.ndarray]
    may_start: np.ndarray
    target: tuple[int, int]


@dataclass(frozen=True)
class Features:
    """Contexts (one per example, shared where equal) and windows in the order of the examples."""

    contexts: list[Tokens]
    windows: list[Window]


def window_starts(tokens: int, budget: int, step: int) -> list[int]:
    """First tokens of the windows over a context: every ``step`` tokens until one reaches the end."""
    starts = [0]
    while starts[-1] + budget < tokens:
        starts.append(starts[-1] + min(budget, step))
    return starts


def most_context(tokens: int, starts: Sequence[int], budget: int) -> np.ndarray:
    """For each token the window that shows it best, the first of equals; shape (tokens,).

    The measure is BERT's: the smaller of the tokens to the left and to the right, plus 0.01 times the
    window's length.
    """
    positions = np.arange(tokens)[None, :]
    first = np.array(starts)[:, None]
    last = np.minimum(first + budget, tokens) - 1
    score = np.minimum(positions - first, last - positions) + 0.01 * (last - first + 1)
    return np.where((positions >= first) & (positions <= last), score, -np.inf).argmax(axis=0)


def answer_tokens(context: Tokens, start: int, end: int) -> tuple[int, int, bool] | None:
    """Tokens that cover the characters [start, end), and whether they had to reach beyond them.

    Returns first token, last token (inclusive) and that flag, or None where no token lies in them. An answer
    can begin or end inside a token (symbols and digits glue together): then the whole token is taken.
    """
    first = int(np.searchsorted(context.ends, start, side="right"))
    last = int(np.searchsorted(context.starts, end, side="left")) - 1
    if first > last:
        return None
    return first, last, bool(context.starts[first] < start or context.ends[last] > end)


def encode(
    examples: Sequence[SpanExample],
    encoder: Encoder,
    config: FinetuneConfig,
    *,
    training: bool,
    counts: Counter[str] | None = None,
) -> Features:
    """Windows over the examples' contexts.

    ``training`` leaves out the examples whose answer is not at its published place. Counted:
    ``unalignable``, ``questions_cut``, ``snapped`` (answers widened to whole tokens), ``trimmed`` (answers
    without the spaces at their ends, which no token holds), ``windows``, ``windows_without_answer``.

    Raises:
        UserError: ``max_length`` leaves no room for the context beside the longest question.
    """
    counts = Counter() if counts is None else counts
    special = sum(map(len, encoder.pair))
    if config.max_length - special - config.max_question_length < 1:
        raise UserError(
            f"a length of {config.max_length} leaves no room beside a question of "
            f"{config.max_question_length} tokens; give a longer --max-length"
        )
    texts = list(dict.fromkeys(example.context for example in examples))
    known = dict(zip(texts, encoder.tokens(texts), strict=True))
    contexts = [known[example.context] for example in examples]
    windows: list[Window] = []
    for index, question in enumerate(encoder.tokens([example.question for example in examples])):
        context, example = contexts[index], examples[index]
        answer = None
        if example.start is not None and example.answers:
            answer = answer_tokens(context, example.start, example.start + len(example.answers[0]))
        counts["unalignable"] += answer is None
        if answer is None and training:
            continue
        counts["questions_cut"] += len(question.ids) > config.max_question_length
        if answer is not None and example.start is not None:
            end = example.start + len(example.answers[0])
            inside = context.starts[answer[0]] > example.start or context.ends[answer[1]] < end
            counts["snapped"] += answer[2]
            counts["trimmed"] += bool(inside)
        ids = question.ids[: config.max_question_length]
        made = list(_windows(index, context, ids, answer, encoder, config.max_length, config.window_step))
        counts["windows"] += len(made)
        counts["windows_without_answer"] += sum(window.target == (0, 0) for window in made)
        windows += made
    return Features(contexts, windows)


def _windows(
    index: int,
    context: Tokens,
    question: np.ndarray,
    answer: tuple[int, int, bool] | None,
    encoder: Encoder,
    max_length: int,
    step: int,
) -> Iterator[Window]:
    tokens = len(context.ids)
    budget = max_length - len(question) - sum(map(len, encoder.pair))
    prefix = len(encoder.pair[0]) + len(question) + len(encoder.pair[1])
    starts = window_starts(tokens, budget, step)
    best = most_context(tokens, starts, budget)
    for number, first in enumerate(starts):
        length = min(budget, tokens - first)
        inside = answer is not None and first <= answer[0] and answer[1] < first + length
        target = (answer[0] - first + prefix, answer[1] - first + prefix) if answer and inside else (0, 0)
        yield Window(
            example=index,
            first=first,
            length=length,
            prefix=prefix,
            row=encoder.join(question, context.ids[first : first + length]),
            may_start=best[first : first + length] == number,
            target=target,
        )


def loss(output: Any, targets: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Mean over the batch of the mean of the two cross-entropies, in float32.

    Logits and ``mask`` are (batch, length), 0 in the mask on padding, which takes no part (so that the
    loss does not depend on how rows were put together); ``targets`` (batch, 2) holds the positions of the
    first and last token.
    """
    start = output.start_logits.float().masked_fill(mask == 0, NEVER)
    end = output.end_logits.float().masked_fill(mask == 0, NEVER)
    return (functional.cross_entropy(start, targets[:, 0]) + functional.cross_entropy(end, targets[:, 1])) / 2


def best_spans(
    start: np.ndarray, end: np.ndarray, may_start: np.ndarray, longest: int, count: int
) -> list[tuple[float, int, int]]:
    """The ``count`` best spans of at most ``longest`` tokens: (start + end logit, first, last), best first.

    All arrays are (tokens,). Exact: the best spans begin at the tokens whose own best span is best.
    """
    tokens = len(start)
    longest = min(longest, tokens)
    padded = np.concatenate([end.astype(np.float32), np.full(longest - 1, NEVER, np.float32)])
    ends = np.lib.stride_tricks.sliding_window_view(padded, longest)  # row s: ends s, s + 1, ...
    begin = np.where(may_start, start, NEVER).astype(np.float32)
    keep = min(count, tokens)
    firsts = np.argpartition(-(begin + ends.max(axis=1)), keep - 1)[:keep]
    firsts.sort()
    scores = begin[firsts, None] + ends[firsts]
    order = np.argsort(-scores, axis=None, kind="stable")[:count]
    rows, lengths = np.unravel_index(order, scores.shape)
    return [
        (float(scores[row, length]), int(firsts[row]), int(firsts[row] + length))
        for row, length in zip(rows, lengths, strict=True)
        if scores[row, length] > NEVER / 2
    ]


def predictions(
    examples: Sequence[SpanExample],
    features: Features,
    logits: Sequence[tuple[np.ndarray, np.ndarray]],
    max_answer_length: int,
) -> list[dict[str, Any]]:
    """``{id, prediction, n_best: [{text, score}]}`` of each example; the score is the sum of two logits.

    ``logits`` holds for each window its start and end logits over the whole row. Of equal texts the best
    remains. An empty context gives an empty prediction.
    """
    found: list[dict[str, float]] = [{} for _ in examples]
    for window, (start, end) in zip(features.windows, logits, strict=True):
        if not window.length:
            continue
        part = slice(window.prefix, window.prefix + window.length)
        context, text = features.contexts[window.example], examples[window.example].context
        best = found[window.example]
        for score, first, last in best_spans(
            start[part], end[part], window.may_start, max_answer_length, N_BEST
        ):
            answer = text[context.starts[window.first + first] : context.ends[window.first + last]]
            best[answer] = max(score, best.get(answer, -np.inf))
    result = []
    for example, best in zip(examples, found, strict=True):
        ranked = sorted(best.items(), key=lambda item: -item[1])[:N_BEST]
        n_best = [{"text": text, "score": score} for text, score in ranked]
        result.append({"id": example.id, "prediction": ranked[0][0] if ranked else "", "n_best": n_best})
    return result


def oracle(examples: Sequence[SpanExample], encoder: Encoder, config: FinetuneConfig) -> list[dict[str, Any]]:
    """Predictions from perfect logits: what windows and the answer length limit let through at best."""
    features = encode(examples, encoder, config, training=False)
    logits = []
    for window in features.windows:
        pair = np.zeros((2, len(window.row[0])), dtype=np.float32)
        if window.target != (0, 0):
            pair[0, window.target[0]] = pair[1, window.target[1]] = 100.0
        logits.append((pair[0], pair[1]))
    return predictions(examples, features, logits, config.max_answer_length)
