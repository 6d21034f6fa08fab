"""What a user of corpus or pretrain gets wrong: one sentence, exit status 1, nothing left half-written."""

import bz2
import gzip
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from datasets import Dataset

import provenance
from provenance import hold, write_manifest

SAMPLE = Path(__file__).parent.parent / "corpus" / "sample"
SENTENCE = "今天的天气很好，我们一起去公园散步，看到很多人在那里放风筝。"
Fails = Callable[..., str]

# --- corpus ---------------------------------------------------------------------------------------

WIKI = (SAMPLE / "zhwiki-sample.xml").read_bytes()[:6000]
WIKI = WIKI[: WIKI.rindex(b"</page>")] + b"</page></mediawiki>"
WARC = gzip.decompress((SAMPLE / "web-sample.warc.gz").read_bytes())
WARC = WARC[: WARC.index(b"WARC/1", len(WARC) // 3)]
PACKED = bz2.compress(WIKI)
INPUTS = {  # file name: (its bytes, None where there is no file; what the message says)
    "missing.xml": (None, "missing.xml' names no file"),
    "empty.xml": (b"", "empty.xml is empty"),
    "empty.jsonl.gz": (gzip.compress(b""), "empty.jsonl.gz is empty"),
    "cut.xml.bz2": (PACKED[: len(PACKED) // 2], "cut.xml.bz2 is cut off"),
    "one-stream-of-two.xml.bz2": (bz2.compress(WIKI[:-40]), "one-stream-of-two.xml.bz2 line"),
    "cut.xml.gz": (gzip.compress(WIKI)[:-9], "cut.xml.gz is cut off"),
    "cut.warc": (WARC[:-300], "cut.warc record"),
    "cut.warc.gz": (gzip.compress(WARC[:-300]), "cut.warc.gz record"),
    "feed.xml": (b"<rss><channel/></rss>", "its root is <rss>, not <mediawiki>"),
    "page.xml": (b"no markup", "page.xml line 1 is not XML"),
    "page.warc": (b"<html>", "page.warc holds no WARC record"),
    "broken.jsonl": (b'{"text": "a"}\n{"text"', "broken.jsonl line 2 is not JSON"),
    "keyless.jsonl": (b'{"text": "a"}\n{"body": "b"}', 'keyless.jsonl line 2 has no text under "text"'),
    "gbk.txt": ("汉字".encode("gbk"), "gbk.txt line 1 is not UTF-8"),
    "broken.parquet": (b"PAR1....", "broken.parquet is damaged"),
    "letter.doc": (b"x", "letter.doc is of no known format"),
}


@pytest.mark.parametrize("name", INPUTS)
def test_corpus_input(name: str, fails: Fails, tmp_path: Path, vocab_path: Path):
    content, expected = INPUTS[name]
    if content is not None:
        (tmp_path / name).write_bytes(content)
    message = fails("corpus.build", tmp_path / name, "--out", tmp_path / "out", "--workers", 1)
    assert expected in message
    assert not (tmp_path / "out").exists()


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """A file that a corpus can be built from."""
    path = tmp_path / "good.txt"
    path.write_text(SENTENCE, encoding="utf-8")
    return path


def test_other_vocabulary(fails: Fails, tmp_path: Path, text: Path):
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n")
    message = fails("corpus.build", text, "--out", tmp_path / "out", "--vocab", tmp_path / "vocab.txt")
    assert "vocab.txt is not the BERT-Chinese vocabulary" in message
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "content", ["garbage", "[]", '{"schema": 1, "files": {}}', '{"config": 3}', b"\xff\xfe"]
)
@pytest.mark.parametrize("program", ["corpus.build", "pretrain.train"])
def test_garbage_to_replay(program: str, content: str | bytes, fails: Fails, tmp_path: Path, text: Path):
    manifest = tmp_path / "manifest.json"
    manifest.write_bytes(content if isinstance(content, bytes) else content.encode())
    first = [text] if program == "corpus.build" else ["tiny", "--corpus", tmp_path]
    assert str(manifest) in fails(program, *first, "--out", tmp_path / "out", "--from", manifest)
    assert not (tmp_path / "out").exists()


def test_output_is_no_folder(fails: Fails, text: Path, vocab_path: Path):
    assert "is a file" in fails("corpus.build", text, "--out", text)
    assert "cannot be written (Not a directory)" in fails("corpus.build", text, "--out", text / "below")


def test_output_of_someone_else(fails: Fails, tmp_path: Path, text: Path, vocab_path: Path):
    assert "is not empty and holds no corpus" in fails("corpus.build", text, "--out", tmp_path)


def test_disk_that_refuses(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    def full() -> None:
        with provenance.atomic_file(tmp_path / "out.bin"), open("/dev/full", "wb") as file:
            file.write(b"0" * 100_000)

    def full_for_a_library() -> None:
        with provenance.atomic_folder(tmp_path / "out"):
            raise RuntimeError("I/O error: No space left on device (os error 28)")

    for program, name in ((full, "out.bin"), (full_for_a_library, "out")):
        expected = f"error: {tmp_path / name}: No space left on device; make room"
        with pytest.raises(SystemExit) as ended:
            provenance.run_cli(program)
        assert ended.value.code == 1
        assert capsys.readouterr().err.startswith(expected)
    assert not list(tmp_path.iterdir())


# --- pretraining ----------------------------------------------------------------------------------


@pytest.fixture
def corpus(tmp_path: Path, vocab_path: Path) -> Path:
    """A packed corpus of four rows."""
    folder = tmp_path / "corpus"
    row = {"input_ids": [101, 1, 2, 102], "token_type_ids": [0] * 4, "word_starts": [True] * 4}
    for split in ("train", "heldout"):
        Dataset.from_list([row] * 4).save_to_disk(str(folder / "rows-128" / split))
    shutil.copyfile(vocab_path, folder / "vocab.txt")
    write_manifest(folder, stage="corpus.build", config={})
    return folder


def _no_corpus(corpus: Path) -> None:
    shutil.rmtree(corpus)


def _unfinished(corpus: Path) -> None:
    (corpus / "manifest.json").unlink()


def _changed(corpus: Path) -> None:
    with open(next((corpus / "rows-128" / "train").glob("*.arrow")), "ab") as file:
        file.write(b"x")


def _file_gone(corpus: Path) -> None:
    (corpus / "vocab.txt").unlink()


def _as_it_is(corpus: Path) -> None:
    pass


@pytest.mark.parametrize(
    ("harm", "options", "expected"),
    [
        (_no_corpus, [], "is no folder"),
        (_unfinished, [], "manifest.json does not exist"),
        (_changed, [], ".arrow differs from its manifest"),
        (_file_gone, [], "vocab.txt is named in its manifest but missing"),
        (_as_it_is, ["--length", 64], "has no rows-64 (there are: rows-128)"),
        (_as_it_is, ["--length", 1024], "length 1024 is above the model's 512 positions"),
        (_as_it_is, ["--micro-batch", 3], "do not divide into micro-batches of 3"),
        (_as_it_is, ["--steps", 0], "steps is 0"),
        (_as_it_is, ["--log-every", 0], "log_every is 0"),
        (_as_it_is, ["--heads", 0], "heads is 0"),
        (_as_it_is, ["--mask-fraction", 2], "mask_fraction 2.0 is not a share"),
        (_as_it_is, ["--learning-rate", "nan"], "learning_rate must be a number above 0"),
        (_as_it_is, ["--vocab-size", 100], "vocab_size 100 is not that of the corpus"),
        (_as_it_is, ["--objective", "none"], "objective 'none' is not known"),
    ],
)
def test_pretraining(
    harm: Callable, options: list, expected: str, fails: Fails, tmp_path: Path, corpus: Path
):
    harm(corpus)
    message = fails("pretrain.train", "tiny", "--corpus", corpus, "--out", tmp_path / "run", *options)
    assert expected in message
    assert not (tmp_path / "run").exists()


def test_unknown_size(fails: Fails, tmp_path: Path):
    message = fails("pretrain.train", "huge", "--corpus", tmp_path, "--out", tmp_path / "run", status=2)
    assert all(f"'{size}'" in message for size in ("tiny", "mini", "small", "small-ex", "base", "large"))


def test_damaged_run_folder(fails: Fails, tmp_path: Path, corpus: Path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "run.json").write_text("{")
    assert "run.json" in fails("pretrain.train", "tiny", "--corpus", corpus, "--out", run)


# --- two runs on one folder -----------------------------------------------------------------------


def test_folder_of_another_run(fails: Fails, tmp_path: Path, text: Path, corpus: Path, tiny_model: Path):
    out = tmp_path / "out"
    with hold(out):
        assert "is held by another run" in fails("corpus.build", text, "--out", out)
        assert "is held by another run" in fails("pretrain.train", "tiny", "--corpus", corpus, "--out", out)
    assert [path.name for path in out.iterdir()] == [".lock"]
