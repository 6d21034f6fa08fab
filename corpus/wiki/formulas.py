"""Formulas in TeX as a line of plain text: ``\\frac{a}{2} \\leq x^2`` is ``a/2 ≤ x²``.

Only what a reader would write on one line. A formula with anything else (matrices, cases, integrals with
limits, unknown commands) gives nothing, and its sentence has a gap.
"""

from __future__ import annotations

import re

_TOKENS = re.compile(r"\\[A-Za-z]+\*?|\\.|[^\\]", re.DOTALL)
_LONGEST = 200  # characters of TeX
_DEEPEST = 20


def _pairs(text: str) -> dict[str, str]:
    return dict(zip(*[iter(text.split())] * 2, strict=True))


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SYMBOLS = _pairs(
    r"""alpha α beta β gamma γ delta δ epsilon ε varepsilon ε zeta ζ eta η theta θ vartheta θ iota ι kappa κ
    lambda λ mu μ nu ν xi ξ pi π rho ρ sigma σ tau τ upsilon υ phi φ varphi φ chi χ psi ψ omega ω
    Gamma Γ Delta Δ Theta Θ Lambda Λ Xi Ξ Pi Π Sigma Σ Phi Φ Psi Ψ Omega Ω
    times × cdot · div ÷ pm ± mp ∓ ast * star * circ ° bullet • prime ′ infty ∞ partial ∂ nabla ∇ hbar ħ ell ℓ
    le ≤ leq ≤ leqslant ≤ ge ≥ geq ≥ geqslant ≥ ne ≠ neq ≠ ll ≪ gg ≫ lt < gt > approx ≈ sim ~ simeq ≃ cong ≅
    equiv ≡ propto ∝ to → rightarrow → Rightarrow ⇒ leftarrow ← leftrightarrow ↔ Leftrightarrow ⇔ iff ⇔
    mapsto ↦ longrightarrow → implies ⇒ in ∈ notin ∉ ni ∋ subset ⊂ subseteq ⊆ supset ⊃ supseteq ⊇ cup ∪ cap ∩
    emptyset ∅ varnothing ∅ setminus \ forall ∀ exists ∃ land ∧ wedge ∧ lor ∨ vee ∨ neg ¬ lnot ¬ oplus ⊕
    otimes ⊗ perp ⊥ parallel ∥ mid | vert | Vert ‖ angle ∠ triangle △ ldots … dots … cdots … dotsb … lbrace {
    rbrace } langle ⟨ rangle ⟩ lfloor ⌊ rfloor ⌋ lceil ⌈ rceil ⌉ aleph ℵ Re ℜ Im ℑ degree ° backslash \
    { { } } % % $ $ & & # # _ _ | ‖"""
)
_SPACES = {",": "", ":": "", ";": "", "!": "", " ": " ", "quad": " ", "qquad": " "}
_NAMES = _words(
    """sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh log ln lg exp lim max min sup inf det dim
    ker gcd deg arg mod bmod Pr"""
)
_STYLES = _words(  # commands that show their one argument
    """text textrm textbf textit textsf texttt mbox mathrm mathbf mathit mathsf mathtt mathbb mathcal mathfrak
    mathscr boldsymbol operatorname rm bf bar overline hat widehat tilde vec dot ce mathop"""
)
_SILENT = _words(
    """displaystyle textstyle scriptstyle limits nolimits left right big Big bigg Bigg bigl bigr Bigl Bigr
    biggl biggr"""
)
_RAISED = {"2": "²", "3": "³", "°": "°", "′": "′"}


class _UnwritableError(Exception):
    """The formula has something that no line of text can show."""


def raised(text: str) -> str:
    """A superscript on the line: ² and ³ as such, other powers after ``^``."""
    return _RAISED.get(text) or "^" + (text if text.lstrip("+-−").isalnum() else _closed(text))


def _closed(text: str) -> str:
    return text if len(text) == 1 or text.isalnum() else f"({text})"


def _argument(rest: list[str], depth: int) -> str:
    while rest and rest[-1].isspace():
        rest.pop()
    if not rest:
        raise _UnwritableError
    return _piece(rest.pop(), rest, depth).strip()


def _row(rest: list[str], depth: int) -> str:
    """Up to the closing brace of this depth; at depth 0 to the end. ``rest`` is reversed and used up."""
    pieces: list[str] = []
    while rest:
        token = rest.pop()
        if token == "}":
            if depth:
                return "".join(pieces)
            raise _UnwritableError
        pieces.append(_piece(token, rest, depth))
    if depth:
        raise _UnwritableError
    return "".join(pieces)


def _piece(token: str, rest: list[str], depth: int) -> str:
    if depth > _DEEPEST:
        raise _UnwritableError
    if token == "{":
        return _row(rest, depth + 1)
    if token == "^":
        return raised(_argument(rest, depth + 1))
    if token == "_":
        below = _argument(rest, depth + 1)
        return below if below.isdecimal() else "_" + _closed(below)
    if token == "&":
        raise _UnwritableError
    if token[0] != "\\":
        return " " if token == "~" else token
    name = token[1:].rstrip("*") or "*"
    if name in _SYMBOLS:
        return _SYMBOLS[name]
    if name in _SPACES:
        return _SPACES[name]
    if name in _NAMES:
        return name + (" " if rest and (rest[-1].isalpha() or len(rest[-1]) > 1) else "")
    if name in _STYLES:
        return _argument(rest, depth + 1)
    if name in ("frac", "dfrac", "tfrac", "cfrac"):
        above = _argument(rest, depth + 1)
        return f"{_closed(above)}/{_closed(_argument(rest, depth + 1))}"
    if name == "sqrt" and rest and rest[-1] != "[":
        return "√" + _closed(_argument(rest, depth + 1))
    if name in _SILENT:
        if rest and rest[-1] == ".":  # the invisible one of a pair of brackets
            rest.pop()
        return ""
    raise _UnwritableError


def formula_text(tex: str) -> str:
    """The formula on one line, or nothing where it cannot be written so. Linear time."""
    if len(tex) > _LONGEST:
        return ""
    try:
        return " ".join(_row(_TOKENS.findall(tex)[::-1], 0).split())
    except _UnwritableError:
        return ""
