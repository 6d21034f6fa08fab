"""The best score a span task lets any model reach: perfect logits through windows and answer limit."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterator, Sequence

from benchmarks.metrics import cmrc
from finetune import span
from finetune.config import FinetuneConfig
from finetune.examples import SpanExample
from finetune.tokens import Encoder


def _places(example: SpanExample) -> Iterator[SpanExample]:
    """The example once for each gold text that stands in its context, placed there.

    The first is at its published place; of the others any place will do, as only the text is scored.
    """
    for number, text in enumerate(dict.fromkeys(example.answers)):
        start = example.start if number == 0 else example.context.find(text)
        if text and start is not None and start >= 0:
            yield dataclasses.replace(example, answers=(text,), start=start)


def ceiling(examples: Sequence[SpanExample], encoder: Encoder, config: FinetuneConfig) -> dict[str, float]:
    """``exact_match`` and ``f1`` in percent that perfect logits reach: the best gold text of each question.

    What they lack to 100 is lost to the answer length limit, to answers inside a token, and to answers that
    are not in their context. F1 is a lower bound: of an overlong answer, some piece that fits is taken.
    """
    placed = [copy for example in examples for copy in _places(example)]
    best: dict[str, tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
    answers = {example.id: example.answers for example in examples}
    for copy, found in zip(placed, span.oracle(placed, encoder, config), strict=True):
        score = cmrc(answers[copy.id], found["prediction"])
        best[copy.id] = max(best[copy.id], score)
    scores = [best[example.id] for example in examples]
    total = max(1, len(scores))
    return {
        "exact_match": 100 * sum(em for em, _ in scores) / total,
        "f1": 100 * sum(f1 for _, f1 in scores) / total,
    }
