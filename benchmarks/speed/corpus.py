"""Wikitext, WordPiece, whole builds and memory of the corpus tools."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import psutil

from benchmarks.speed.inputs import repeat_text, repeat_wiki
from benchmarks.speed.turns import Contestant, Measurement, Setting, Step
from corpus.inputs.sources import read_documents
from corpus.script import count_han
from corpus.tokens.wordpiece import WordPiece
from corpus.vocab import fast_tokenizer, vocab_path
from provenance import UserError

MB = 1_000_000
WIKIEXTRACTOR = "wikiextractor==3.1.0"  # AGPL: never a dependency, only in an environment that is thrown away
_RUN_OURS = """
import sys
from pathlib import Path
from corpus.inputs.sources import read_documents
with open(sys.argv[2], "w", encoding="utf-8") as out:
    for document in read_documents(Path(sys.argv[1])):
        out.write(document.text + "\\n\\n")
"""


def one_core() -> None:
    """Keep this process and its children on one core."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def _run(command: Sequence[str | Path], *, pinned: bool = False) -> None:
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, preexec_fn=one_core if pinned else None
    )
    if done.returncode:
        raise UserError(f"{' '.join(map(str, command[:4]))} ... failed: {done.stderr.strip()[-400:]}")


# --- wikitext -------------------------------------------------------------------------------------


def _environment(scratch: Path) -> Path:
    """The Python of a throw-away environment that holds wikiextractor."""
    folder = scratch / "wikiextractor"
    python = folder / "bin" / "python"
    if not (folder / "installed").is_file():
        shutil.rmtree(folder, ignore_errors=True)
        _run([sys.executable, "-m", "venv", folder])
        _run([python, "-m", "pip", "install", "--quiet", WIKIEXTRACTOR])
        (folder / "installed").touch()
    return python


def wikitext(setting: Setting) -> Measurement:
    """An export of 50 MB to text on one core: ours against wikiextractor, each as a whole process."""
    dump, folder = setting.scratch / "wiki.xml", setting.scratch / "wiki"
    size = repeat_wiki(setting.wiki, dump, 5 * MB if setting.quick else 50 * MB)
    python = _environment(setting.scratch)

    def peer() -> float:
        shutil.rmtree(folder, ignore_errors=True)
        options = ["--processes", "1", "--no-templates", "-q", "-o", str(folder)]
        _run([python, "-m", "wikiextractor.WikiExtractor", dump, *options], pinned=True)
        han = sum(count_han(p.read_text(encoding="utf-8")) for p in folder.rglob("wiki_*"))
        if not han:
            raise UserError("wikiextractor wrote no text: there is nothing to compare with")
        return han / 1e6

    def ours() -> float:
        target = setting.scratch / "wiki.txt"
        _run([sys.executable, "-c", _RUN_OURS, dump, target], pinned=True)
        return count_han(target.read_text(encoding="utf-8")) / 1e6

    contestants = (
        Contestant("wikiextractor", lambda: peer),
        Contestant("ours", lambda: ours, peers={"wikiextractor": 3}),
    )
    what = f"MediaWiki export of {size / MB:.0f} MB to text, one core, whole processes"
    return Measurement(what, "MB", size / MB, contestants, value="millions of Han", rounds=3, warm_up=False)


# --- WordPiece ------------------------------------------------------------------------------------


def _sample_texts(setting: Setting, size: int) -> list[str]:
    """Clean-ish documents spread over the files of text, about ``size`` bytes."""
    files = setting.text or tuple(sorted((Path(__file__).parents[2] / "corpus" / "sample").glob("*.xml")))
    share, texts = size // len(files), []
    for path in files:
        taken = 0
        for document in read_documents(path):
            if taken >= share:
                break
            texts.append(document.text)
            taken += len(document.text.encode())
    return texts


def wordpiece(setting: Setting) -> Measurement:
    """Ids of documents on one core: our WordPiece against ``tokenizers``."""
    texts = _sample_texts(setting, 2 * MB if setting.quick else 12 * MB)
    size = sum(len(text.encode()) for text in texts)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    vocab = vocab_path()

    def peer() -> Step:
        tokenizer = fast_tokenizer(vocab)
        return lambda: float(sum(len(e.ids) for e in tokenizer.encode_batch(texts, add_special_tokens=False)))

    def ours() -> Step:
        # A fresh encoder each time: what it remembers of the last round would flatter it.
        return lambda: float(len(WordPiece(vocab).encode("\n".join(texts)).ids))

    contestants = (
        Contestant("tokenizers", peer),
        Contestant("ours", ours, peers={"tokenizers": 6}),
    )
    what = f"WordPiece ids of {size / MB:.0f} MB of text ({len(texts):,} documents), one core"
    return Measurement(what, "MB", size / MB, contestants, value="tokens")


# --- builds ---------------------------------------------------------------------------------------


def _build(inputs: Sequence[Path], out: Path, workers: int, options: Sequence[str]) -> list[str]:
    command = [sys.executable, "-m", "corpus.build", *inputs, "--out", out, "--overwrite", "--no-progress"]
    return list(map(str, [*command, "--workers", workers, *options]))


def _text(setting: Setting, size: int) -> tuple[list[Path], float]:
    """Input files and the MB of text in them; without ``--text`` the bundled sample, repeated."""
    if setting.text and not size:
        total = sum(len(d.text.encode()) for path in setting.text for d in read_documents(path))
        return list(setting.text), total / MB
    files = setting.text or (Path(__file__).parents[2] / "corpus" / "sample" / "zhwiki-sample.xml",)
    target = setting.scratch / f"text-{size // MB}.jsonl.gz"
    return [target], repeat_text(files, target, size) / MB


def build(setting: Setting) -> Measurement:
    """Whole builds: everything on, without the costly comparisons, and with two workers."""
    repeat = 5 * MB if setting.quick else 0 if setting.text else 50 * MB
    inputs, size = _text(setting, repeat)
    everything = ["--benchmarks", str(setting.tasks)]
    out = setting.scratch / "corpus"

    def contestant(
        name: str,
        workers: int,
        options: Sequence[str],
        peers: Mapping[str, float | None] | None = None,
        least_rate: float | None = None,
    ) -> Contestant:
        def step() -> float:
            _run(_build(inputs, out, workers, options))
            return float(sum(1 for _ in (out / "documents").glob("*.parquet")))

        return Contestant(name, lambda: step, peers=peers or {}, least_rate=least_rate, cores=workers)

    one = "everything, 1 worker"
    contestants = (
        contestant(one, 1, everything, least_rate=1.0),
        contestant("everything, 2 workers", 2, everything, peers={one: 1.7}),
        contestant(
            "no near duplicates, no contamination, 1 worker", 1, ["--no-near-duplicates"], least_rate=2.0
        ),
    )
    what = f"`corpus.build` of {size:.0f} MB of text, rows of 128 and 512 tokens, whole processes"
    return Measurement(what, "MB", size, contestants, value="shards", rounds=1, warm_up=False)


# --- memory ---------------------------------------------------------------------------------------


def peak_of_workers(command: Sequence[str], poll: float = 0.2) -> float:
    """Run ``command``; the largest resident memory of any one of its processes, in MB."""
    peak = 0
    ended = threading.Event()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def watch() -> None:
        nonlocal peak
        root = psutil.Process(process.pid)
        while not ended.wait(poll):
            try:
                family = [root, *root.children(recursive=True)]
            except psutil.NoSuchProcess:
                return
            for member in family:
                try:
                    peak = max(peak, member.memory_info().rss)
                except psutil.NoSuchProcess:
                    continue

    thread = threading.Thread(target=watch)
    thread.start()
    _, errors = process.communicate()
    ended.set()
    thread.join()
    if process.returncode:
        raise UserError(f"{' '.join(command[:4])} ... failed: {errors.strip()[-400:]}")
    return peak / 1e6


def memory(setting: Setting) -> Measurement:
    """Peak memory of a worker for an input and for ten times as much."""
    small = 5 * MB if setting.quick else 150 * MB
    workers = min(2, os.cpu_count() or 1)

    def contestant(size: int) -> Contestant:
        def make() -> Step:
            inputs, _ = _text(setting, size)
            options = ["--benchmarks", str(setting.tasks)]
            return partial(peak_of_workers, _build(inputs, setting.scratch / "corpus", workers, options))

        return Contestant(f"{size // MB} MB", make, cores=workers)

    what = f"Peak resident memory of any process of `corpus.build`, {workers} workers, everything on"
    return Measurement(
        what,
        "MB",
        small / MB,
        (contestant(small), contestant(10 * small)),
        value="peak MB",
        rounds=1,
        warm_up=False,
    )
