"""The pass over the tokens of wikitext: a token regex and a stack of open constructs.

Time is linear in the input whatever it holds: tokens are visited once, a construct's text is joined at most
``MAX_DEPTH`` times, and a search for a closing tag is not repeated.
Markup that is never closed loses its marks, not its text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from corpus.wiki.brackets import GAP
from corpus.wiki.markup import (
    DROPPED_TAGS,
    HEADING,
    NEWLINE_TAGS,
    external_text,
    link_text,
    table_text,
    variant_text,
)
from corpus.wiki.templates import template_text

MAX_DEPTH = 40  # as MediaWiki has it for templates
PROTECTED = (
    "\ufdd0"  # stands before and after text that no conversion may touch; no page has this noncharacter
)

# Every alternative begins with a literal character, so that the search skips prose at the speed of C.
_TOKEN = re.compile(
    r"""\n(?:[ \t:]*\{\||[ \t]*\|\}(?!\}(?!\})))              # a table, its end
      | -\{(?!\{(?!\{))                                       # a variant; -{{name}} is a dash and a template
      | \{\{(?!\{)[^{}\[\]<]*\}\}(?!\})                       # a whole template or link with nothing inside
      | \[\[[^\[\]{}<|\n]+(?:\|[^\[\]{}<|\n]+)?\]\]
      | \{\{+ | \}\}\}? | \}- | \[\[(?!\[(?!\[)) | \]\]? | \|
      | \[(?=(?:https?|ftps?|mailto|news|irc):|//)            # an external link
      | </?[a-zA-Z][a-zA-Z0-9]*(?:[\s/][^<>]*)?>
    """
    rf"| {HEADING}",
    re.VERBOSE,
)
# Of elements whose content is dropped: the end, a start, and the heading that no reference or formula holds.
_INLINE = {"ref", "math", "chem", "ce", "hiero", "rt", "rp"}
_ELEMENTS = {
    name: re.compile(
        rf"</{name}\s*>|<{name}(?:[\s/][^<>]*)?(?<!/)>" + (f"|{HEADING}" if name in _INLINE else ""),
        re.IGNORECASE,
    )
    for name in (*DROPPED_TAGS, "ref")
}
_END_TAGS = {"ref": GAP, "sup": "</sup>"}  # what stays of them
_CELLS = {"td", "th", "tr", "caption"}
_TAG_NAME = re.compile(r"</?([a-zA-Z][a-zA-Z0-9]*)")


@dataclass(slots=True)
class _Frame:
    """An open construct: its mark, the finished arguments and the pieces of the argument being read."""

    kind: str
    mark: str
    braces: int = 0
    arguments: list[str] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)

    def split(self) -> None:
        self.arguments.append("".join(self.pieces))
        self.pieces = []

    def finish(self) -> list[str]:
        self.split()
        return self.arguments


# A closing mark may pass over unclosed constructs of these kinds to reach its own.
_CROSSES = {
    "template": ("link", "external", "variant", "table", "html table"),
    "link": ("external", "variant"),
    "external": ("variant",),
    "variant": ("link", "external"),
    "table": ("link", "external", "variant", "html table"),
    "html table": ("link", "external", "variant", "table"),
}


def _unclosed(frame: _Frame) -> str:
    """What stays of a construct that nothing closed."""
    text = "|".join(frame.finish())
    if frame.kind == "variant":
        return frame.mark + text
    if frame.kind in ("template", "table"):  # parameters and cells are not sentences
        lines = text.split("\n")
        return "\n".join(line for line in lines if not line.lstrip().startswith(("|", "!")))
    return text


def shown_variant(content: str, script: str, protect: bool) -> str:
    """What ``-{content}-`` shows, between two marks if it is to be protected."""
    text = variant_text(content, script)
    if protect and text and "\n" not in text and PROTECTED not in text:
        return f"{PROTECTED}{text}{PROTECTED}"
    return text


class Scanner:
    """The pass over the tokens; ``run`` returns text whose line marks and ``<sup>`` are still there."""

    def __init__(self, text: str, title: str, script: str, protect: bool) -> None:
        self.text = text
        self.title = title
        self.script = script
        self.protect = protect
        self.stack = [_Frame("page", "")]
        self.ends: dict[int, int | None] = {}  # of elements: end of the start tag -> end of the end tag

    def run(self) -> str:
        text, search = self.text, _TOKEN.search
        handlers = {
            "\n": self._line,
            "-": self._variant,
            "{": self._open,
            "}": self._close,
            "[": self._link,
            "]": self._end,
            "|": self._pipe,
            "<": self._tag,
        }
        position = 0
        while token := search(text, position):
            start, mark = token.start(), token[0]
            if start > position:
                self.stack[-1].pieces.append(text[position:start])
            position = handlers[mark[0]](mark, token.end())
        self.stack[-1].pieces.append(text[position:])
        self._flush(1)
        return "".join(self.stack[0].pieces)

    # Each handler gets the token and its end, and returns where to read on.

    def _push(self, kind: str, mark: str, end: int, braces: int = 0) -> int:
        if len(self.stack) < MAX_DEPTH:
            self.stack.append(_Frame(kind, mark, braces))
        else:
            self._put(mark if kind == "variant" else "")
        return end

    def _put(self, text: str) -> None:
        if text:
            self.stack[-1].pieces.append(text)

    def _put_or_gap(self, text: str) -> None:
        self.stack[-1].pieces.append(text or GAP)

    def _flush(self, depth: int) -> None:
        """Give up all constructs above ``depth``: their text joins what they stand in."""
        while len(self.stack) > depth:
            self._put(_unclosed(self.stack.pop()))

    def _reach(self, kind: str) -> bool:
        """Make the nearest open construct of ``kind`` the top of the stack, if there is one to reach."""
        for depth in range(len(self.stack) - 1, 0, -1):
            if self.stack[depth].kind == kind:
                self._flush(depth + 1)
                return True
            if self.stack[depth].kind not in _CROSSES[kind]:
                return False
        return False

    def _line(self, mark: str, end: int) -> int:
        if mark.endswith("{|"):
            self._put("\n")
            return self._push("table", "{|", end)
        if mark.endswith("|}"):
            if self._reach("table"):
                self._put("\n" + table_text("|".join(self.stack.pop().finish())))
        else:  # a heading ends what was left open before it, except templates
            depth = len(self.stack)
            while depth > 1 and self.stack[depth - 1].kind != "template":
                depth -= 1
            self._flush(depth)
        self._put("\n")
        return end

    def _variant(self, mark: str, end: int) -> int:
        return self._push("variant", mark, end)

    def _open(self, mark: str, end: int) -> int:
        if mark[-1] == "}":
            self._put_or_gap(template_text(mark[2:-2].split("|"), self.title))
            return end
        return self._push("template", mark, end, len(mark))

    def _close(self, mark: str, end: int) -> int:
        start = end - len(mark)
        if mark == "}-" or (self.stack[-1].kind == "variant" and self.text.startswith("}-", start)):
            if self._reach("variant"):
                content = "|".join(self.stack.pop().finish())
                self._put_or_gap(shown_variant(content, self.script, self.protect))
            else:
                self._put("}-")
            return start + 2
        # -{zh:甲}}- : the braces of a variant inside belong to it first
        if not self._reach("template"):
            if self.text.startswith("-", end) and self._reach("variant"):
                return end - 1
            return end
        frame = self.stack.pop()
        count = min(len(mark), frame.braces)
        arguments = frame.finish()
        if count == 3:  # {{{name|default}}}
            value = arguments[1] if len(arguments) > 1 else ""
        else:
            value = template_text(arguments, self.title)
        if frame.braces - count >= 2:
            self.stack.append(_Frame("template", frame.mark, frame.braces - count))
        self._put_or_gap(value)
        return start + count

    def _link(self, mark: str, end: int) -> int:
        if mark[-1] == "]":
            self._put_or_gap(link_text(mark[2:-2].split("|")))
            return end
        return self._push("link" if mark == "[[" else "external", mark, end)

    def _end(self, mark: str, end: int) -> int:
        if self.stack[-1].kind == "external" or (mark == "]" and self._reach("external")):
            self._put_or_gap(external_text(self.stack.pop().finish()[0]))
            return end - len(mark) + 1
        if mark == "]":
            self._put(mark)
        elif self._reach("link"):
            self._put_or_gap(link_text(self.stack.pop().finish()))
        return end

    def _pipe(self, mark: str, end: int) -> int:
        top = self.stack[-1]
        if top.kind in ("template", "link"):
            top.split()
        else:
            top.pieces.append(mark)
        return end

    def _tag(self, mark: str, end: int) -> int:
        match = _TAG_NAME.match(mark)
        assert match is not None
        name = match[1].lower()
        if name in NEWLINE_TAGS:
            self._put("\n")
        elif name == "table":
            if not mark.startswith("</"):
                return self._push("html table", mark, end)
            if self._reach("html table"):
                self._put("\n" + table_text("|".join(self.stack.pop().finish())) + "\n")
        elif name in _CELLS:
            self._put("\n|" if self.stack[-1].kind == "html table" else "\n")
        elif mark.startswith("</") or mark.endswith("/>"):
            self._put(_END_TAGS.get(name, ""))
        elif name in _ELEMENTS:  # a start tag without its end goes alone
            self._put(GAP)
            return self._element_end(name, end) or end
        elif name == "sup":
            self._put("<sup>")
        return end

    def _element_end(self, name: str, start: int) -> int | None:
        """The end of the element whose start tag ends at ``start``; an element inside it has its own end.

        Linear over all calls: what lies inside is found on the way, also where nothing ends it.
        """
        if start not in self.ends:
            opened = [start]
            for tag in _ELEMENTS[name].finditer(self.text, start):
                if tag[0][0] == "\n":
                    break
                if tag[0][1] != "/":
                    opened.append(tag.end())
                    continue
                self.ends[opened.pop()] = tag.end()
                if not opened:
                    break
            self.ends.update(dict.fromkeys(opened))
        return self.ends[start]
