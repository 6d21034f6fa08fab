"""The two kinds of example that fine-tuning reads, whatever file they came from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TextExample:
    """A text, or a pair of texts, with the index of its class.

    ``text_b`` is None for single texts; ``label`` is None where it is not known.
    """

    id: str
    text_a: str
    text_b: str | None = None
    label: int | None = None


@dataclass(frozen=True)
class SpanExample:
    """A question whose answer is a piece of the context.

    ``answers`` are the gold texts as published. ``start`` is the index of ``answers[0]`` in
    ``context``, counted in Python characters (code points), or None where the published answer is not
    at its published place: such an example is evaluated but not trained on.
    """

    id: str
    question: str
    context: str
    answers: tuple[str, ...] = ()
    start: int | None = None
