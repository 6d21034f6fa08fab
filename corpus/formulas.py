"""Formulas in TeX or MathML as a line of plain text: ``\\frac{a}{2} \\leq x^2`` is ``a/2 ≤ x²``.

Only what a reader would write on one line. A formula with anything else (matrices, cases, unknown commands)
gives nothing, and its sentence has a gap.
"""

from __future__ import annotations

import re

from corpus.script import HAN

_TOKENS = re.compile(r"\\[A-Za-z]+\*?|\\.|[^\\]", re.DOTALL)
_LONGEST = 400  # characters of TeX
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
    sum ∑ prod ∏ int ∫ iint ∬ oint ∮
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
_RAISED = {
    "2": "²", "3": "³", "TM": "™", "o": "°",
    **{sign: sign for sign in ("°", "′", "″", "™", "®", "©", "℠", "st", "nd", "rd", "th")},
}  # fmt: skip
_CLOSED = re.compile(
    r"[+−-]?(?:\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?|\w+)[+−-]?|.|\([^()]*\)"
)  # needs no brackets
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_NUMERIC = re.compile(r"(?:\d|log|lg|[∑∏∫∬∮]) ?\Z")  # a number below these would be read as part of another


class _UnwritableError(Exception):
    """The formula has something that no line of text can show."""


def raised(text: str, after: str = "") -> str:
    """A superscript on the line: ² and ³ as such, others after ``^``: ``^10``, ``^(k+1)``.

    Args:
        text: what is raised.
        after: what follows; a space parts it from a script that it would go on.
    """
    return _apart(_RAISED.get(text) or "^" + _grouped(text), after)


def lowered(text: str, before: str, after: str = "") -> str:
    """A subscript on the line, between the text before and after: ``H2``; ``1010_2``, ``log_2``, ``a_i``."""
    if _NUMBER.fullmatch(text) and not (_NUMERIC.search(before[-4:]) or after[:1].isdecimal()):
        return text
    return _apart("_" + _grouped(text), after)


def _grouped(text: str) -> str:
    return text if _CLOSED.fullmatch(text) else f"({text})"


def _apart(script: str, after: str) -> str:
    pair = script[-1] + after[:1]
    return (
        f"{script} "
        if pair[1:] and (pair.isdecimal() or (pair.isalpha() and not HAN.search(pair)))
        else script
    )


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
        if token in "^_":
            script = _argument(rest, depth + 1)
            before, after = pieces[-1] if pieces else "", rest[-1] if rest else ""
            pieces.append(raised(script, after) if token == "^" else lowered(script, before, after))
        else:
            pieces.append(_piece(token, rest, depth))
    if depth:
        raise _UnwritableError
    return "".join(pieces)


def _piece(token: str, rest: list[str], depth: int) -> str:
    if depth > _DEEPEST:
        raise _UnwritableError
    if token == "{":
        return _row(rest, depth + 1)
    if token in "^_&":
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
    if name == "sqrt":
        return _root(rest, depth)
    if name in _SILENT:
        if rest and rest[-1] == ".":  # the invisible one of a pair of brackets
            rest.pop()
        return ""
    raise _UnwritableError


def _root(rest: list[str], depth: int) -> str:
    """``√x``; of another than the square root ``x^(1/3)``."""
    if rest[-1:] != ["["]:
        return "√" + _closed(_argument(rest, depth + 1))
    rest.pop()
    degree = ""
    while rest and rest[-1] != "]":
        degree += _piece(rest.pop(), rest, depth + 1)
    if not rest or not degree:
        raise _UnwritableError
    rest.pop()
    return f"{_closed(_argument(rest, depth + 1))}^(1/{_closed(degree)})"


def formula_text(tex: str) -> str:
    """The formula on one line, or nothing where it cannot be written so. Linear time."""
    if len(tex) > _LONGEST:
        return ""
    try:
        return " ".join(_row(_TOKENS.findall(tex)[::-1], 0).split())
    except _UnwritableError:
        return ""


_ESCAPED = {ord(mark): f"\\{mark}" for mark in "{}%$&#_"} | {
    ord("\\"): r"\backslash ",
    ord("^"): "^",
    ord("~"): r"\sim ",
}
_ESCAPED |= dict.fromkeys(range(0x2061, 0x2065), "")  # invisible operators
_TEMPLATES = {  # how TeX writes an element with as many children
    "msup": "{%s}^{%s}", "msub": "{%s}_{%s}", "msubsup": "{%s}_{%s}^{%s}", "mfrac": r"\frac{%s}{%s}",
    "munder": "{%s}_{%s}", "munderover": "{%s}_{%s}^{%s}",
}  # fmt: skip
_NO_LINE = {"mtable", "mmultiscripts", "menclose", "mlongdiv", "mstack"}


class MathML:
    """A formula of a page, fed tag by tag; ``text`` has it as :func:`formula_text` would.

    It goes by way of TeX: that of the page's own ``<annotation>``, or what says the same as the elements.
    """

    def __init__(self) -> None:
        self.tex = ""  # that the page has itself
        self.opened: list[tuple[str, list[str]]] = [("math", [])]  # element, its children in TeX

    def start(self, name: str, attributes: str) -> None:
        """A start tag; ``attributes`` as written."""
        if name == "annotation":
            name = "tex" if "tex" in attributes.lower() else name
        if not attributes.endswith("/"):
            self.opened.append((name, []))

    def data(self, text: str) -> None:
        name, children = self.opened[-1]
        if name in ("tex", "mtext"):
            children.append(text if name == "tex" else text.translate(_ESCAPED))
        elif name in ("mi", "mn", "mo", "ms") and (text := text.strip()):
            children.append(f"\\{text} " if text in _NAMES else text.translate(_ESCAPED))

    def end(self, name: str) -> None:
        if len(self.opened) == 1:
            return
        name, children = self.opened.pop()
        if name == "tex":
            self.tex = "".join(children)
            return
        parts = _TEMPLATES.get(name, "")
        if parts.count("%s") == len(children) > 0:
            shown = parts % tuple(children)
        elif name == "mover":
            shown = children[0] if children else ""
        elif name == "mroot" and len(children) == 2:
            shown = rf"\sqrt[{children[1]}]{{{children[0]}}}"
        elif name == "mfenced":
            shown = "(" + ",".join(children) + ")"
        else:
            shown = "".join(children) if len(children) == 1 else "{" + "".join(children) + "}"
        if name == "msqrt":
            shown = rf"\sqrt{{{shown}}}"
        if name in _NO_LINE or len(shown) > _LONGEST:
            shown = r"\unwritable"
        if name not in ("annotation", "annotation-xml", "mphantom"):
            self.opened[-1][1].append(shown)

    def text(self) -> str:
        """The formula on one line, empty where it cannot be written so."""
        while len(self.opened) > 1:
            self.end("")
        return formula_text(self.tex or "".join(self.opened[0][1]))
