"""Fixtures of the corpus tests: inputs made by hand, one build of them, runs of a build, pages of reports."""

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from corpus import build
from corpus.command import Options
from corpus.config import PRESETS, Runtime
from corpus.report.funnel import Stage

ROOT = Path(__file__).resolve().parents[2]
SUBJECTS = ("老师", "医生", "渔民", "工程师", "邻居", "画家", "农民", "司机")
PLACES = ("河边", "图书馆", "车站", "山脚下", "市场", "学校门口", "果园", "码头")
ACTS = ("修理一台旧机器", "整理去年的记录", "向孩子们讲故事", "等一位多年的朋友", "记录天气的变化")


def make_text(number: int, lines: int = 6) -> str:
    parts = []
    for i in range(lines):
        n = number * 7 + i * 5
        subject, place, act = SUBJECTS[n % 8], PLACES[n // 8 % 8], ACTS[n // 3 % 5]
        parts.append(f"第{number}天的第{i}个时辰，{subject}在{place}{act}，然后慢慢走回家去。")
    return "\n".join(parts)


def write_documents(path: Path, documents: list[dict[str, str]]) -> Path:
    with gzip.open(path, "wt", encoding="utf-8") as file:
        for document in documents:
            file.write(json.dumps(document, ensure_ascii=False) + "\n")
    return path


def make_options(inputs: list[str], out: Path, **config: object) -> Options:
    preset = replace(PRESETS["sample"], **config)  # type: ignore[arg-type]
    quiet = Runtime(workers=1, progress=False)
    return Options(inputs=tuple(inputs), out=out, preset="sample", config=preset, runtime=quiet)


def command_line(inputs: list[str], out: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "corpus.build", *inputs, "--preset", "sample", "--out", str(out), *more]


def run_build(inputs: list[str], out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command_line(inputs, out, *more), cwd=ROOT, capture_output=True, text=True)


@pytest.fixture(scope="session")
def text_of() -> Callable[..., str]:
    """Makes a document that no other number gives, of a number of lines."""
    return make_text


@pytest.fixture(scope="session")
def write_lines() -> Callable[..., Path]:
    """Writes documents as JSON lines under gzip."""
    return write_documents


@pytest.fixture(scope="session")
def options() -> Callable[..., Options]:
    """Makes the options of a quiet build of inputs into a folder; settings by name."""
    return make_options


@pytest.fixture(scope="session")
def command() -> Callable[..., list[str]]:
    """Makes the command line of a build of inputs into a folder; further options follow."""
    return command_line


@pytest.fixture(scope="session")
def run() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the command line of a build to its end."""
    return run_build


@pytest.fixture(scope="session")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Three files of 40 documents of their own, a copy and one that is too short."""
    folder = tmp_path_factory.mktemp("inputs")
    for part in range(3):
        documents = [
            {"id": f"{part}/{i}", "source": f"part{part}", "text": make_text(100 * part + i)}
            for i in range(40)
        ]
        documents.append(
            {"id": f"{part}/copy", "source": f"part{part}", "text": make_text(3).replace("，", " ")}
        )
        documents.append({"id": f"{part}/short", "source": f"part{part}", "text": "abc"})
        write_documents(folder / f"part{part}.jsonl.gz", documents)
    return [str(path) for path in sorted(folder.glob("*.gz"))]


@pytest.fixture(scope="session")
def corpus(inputs: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpus of the inputs with rows of both lengths."""
    out = tmp_path_factory.mktemp("corpus") / "out"
    return build.build(make_options(inputs, out, length="both"))


# --- reports --------------------------------------------------------------------------------------


class Page(HTMLParser):
    """Checks that tags are closed in their order; collects the text outside the style sheet."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.text: list[str] = []
        self.anchors: set[str] = set()
        self.links: set[str] = set()
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attributes:
            assert not name.startswith("on")
            if name == "id":
                self.anchors.add(f"#{value}")
            elif name == "href":
                self.links.add(value or "")
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text.append(data)


def assert_adds_up(found: list[Stage]) -> None:
    for before, after in pairwise(found):
        assert before.documents - sum(after.took_documents.values()) == after.documents
        assert before.han - sum(after.took_han.values()) == after.han


@pytest.fixture(scope="session")
def page_of() -> type[Page]:
    """Reads a web page: its tags, text, anchors and links."""
    return Page


@pytest.fixture(scope="session")
def check_funnel() -> Callable[[list[Stage]], None]:
    """What enters a stage less what it took is what leaves it."""
    return assert_adds_up
