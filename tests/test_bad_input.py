"""What a user gets wrong: one sentence, exit status 1, and nothing is left half-written."""

import bz2
import gzip
import importlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from datasets import Dataset

import provenance
from provenance import hold, write_manifest

SAMPLE = Path(__file__).parent.parent / "corpus" / "sample"
DATA = Path(__file__).parent.parent / "benchmarks" / "sample"
FAKE = '{"data": [{"context": "CONTEXT", "qas": [{"id": "1", "question": "", "answers": ["FAKE"]}]}]}'
SENTENCE = "今天的天气很好，我们一起去公园散步，看到很多人在那里放风筝。"

Fails = Callable[..., str]


@pytest.fixture
def fails(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Fails:
    """Run a program that must end with a status; its one sentence, or the parser's."""

    def run(program: str, *arguments: object, status: int = 1) -> str:
        module = importlib.import_module(program)
        monkeypatch.setattr("sys.argv", [program, *map(str, arguments)])
        capfd.readouterr()  # what fixtures printed
        with pytest.raises(SystemExit) as ended:
            provenance.run_cli(module.main)
        message = capfd.readouterr().err.strip()
        assert ended.value.code == status, message
        assert "Traceback" not in message
        if status == 1:
            assert message.startswith("error: ")
            assert message.count("\n") == 0
        return message

    return run


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


# --- benchmarks -----------------------------------------------------------------------------------


@pytest.fixture
def bench(fails: Fails, tiny_model: Path, tmp_path: Path) -> Fails:
    """Run benchmarks.run over the sample with results under tmp_path, of which nothing may appear."""

    def run(*arguments: object, model: object = tiny_model, data: Path = DATA, status: int = 1) -> str:
        folders = ("--results", tmp_path / "runs", "--predictions", tmp_path / "predictions")
        message = fails("benchmarks.run", model, "--data", data, *folders, *arguments, status=status)
        assert not (tmp_path / "runs").exists()
        return message

    return run


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A copy of the sample task files, to be harmed."""
    return shutil.copytree(DATA, tmp_path / "data")


def test_unknown_task_lists_all(bench: Fails):
    assert "cmrc2018, drcd, xnli, chnsenticorp, lcqmc, bq" in bench("--task", "squad")


@pytest.mark.parametrize("seeds", ["0", "-1", "a", "3-1", "", "1-", "--"])
def test_seeds(seeds: str, bench: Fails):
    assert "--seeds" in bench("--task", "bq", "--seeds", seeds, status=2)


@pytest.mark.parametrize("option", ["--jobs", "--limit", "--epochs", "--batch-size", "--lr"])
def test_option_that_must_be_positive(option: str, bench: Fails):
    assert option in bench("--task", "bq", option, 0)


@pytest.mark.parametrize(
    ("file", "content", "expected"),
    [
        ("bq/dev.tsv", "问题\t问题\t1\n问题\t1\n", "dev.tsv:2 has 2 column(s), not 3"),
        ("bq/dev.tsv", "问题\t问题\t7\n", "dev.tsv:1 has the label '7', not one of"),
        ("bq/dev.tsv", "", "dev.tsv holds no usable row"),
        ("bq/train.tsv", b"\xc4\xe3\xba\xc3\t\t1", "train.tsv:1 is not UTF-8"),
        ("chnsenticorp/dev.tsv", "label\ttext_a\n1\t好\t好\n", "dev.tsv:2 has 3 column(s), not 2"),
        ("chnsenticorp/test.tsv", None, "ChnSentiCorp needs test.tsv in"),
        ("bq/dev.tsv", None, "BQ Corpus needs dev.tsv in"),
        ("cmrc2018/dev.json", "{}", "dev.json has no list `data`"),
        ("cmrc2018/dev.json", '{"data": [\n{]}', "dev.json:2 is not JSON"),
        ("cmrc2018/dev.json", '{"data": [3]}', "dev.json: entry 0"),
        ("cmrc2018/train.json", '{"data": []}', "train.json holds no usable row"),
        ("bq/test.tsv", "甲\t乙\t0\n" * 3, "test.tsv has the label 0 on all 3 rows"),
        ("cmrc2018/dev.json", FAKE.replace("CONTEXT", "甲乙"), "has no answer that stands in its context"),
        ("drcd/test.json", FAKE.replace("FAKE", "汉语").replace("CONTEXT", "学习汉语"), "simplified script"),
    ],
)
def test_task_file(file: str, content: str | bytes | None, expected: str, bench: Fails, data: Path):
    if content is None:
        (data / file).unlink()
    else:
        (data / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert expected in bench("--task", file.split("/")[0], data=data)


def test_no_data_folder(bench: Fails, tmp_path: Path):
    message = bench("--task", "drcd", data=tmp_path / "nowhere")
    assert "DRCD needs train.json, dev.json, test.json in" in message
    assert "benchmarks.fetch drcd" in message


@pytest.fixture
def model(tiny_model: Path, tmp_path: Path) -> Path:
    """A copy of the tiny model, to be harmed."""
    return shutil.copytree(tiny_model, tmp_path / "model")


def _without(*names: str) -> Callable[[Path], None]:
    def harm(model: Path) -> None:
        for name in names:
            (model / name).unlink()

    return harm


def _other_vocabulary(model: Path) -> None:
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {"vocab_size": 30_000}))


def _cut_tokenizer(model: Path) -> None:
    (model / "tokenizer.json").write_text('{"version"')
    (model / "vocab.txt").unlink()


def _no_json(model: Path) -> None:
    (model / "config.json").write_text("{")


def _garbage_manifest(model: Path) -> None:
    (model / "manifest.json").write_text("garbage")


@pytest.mark.parametrize(
    ("harm", "expected"),
    [
        (_without("model.safetensors"), "has no weights"),
        (_without("config.json"), "has no config.json"),
        (_no_json, "config.json cannot be used"),
        (_without("tokenizer.json", "vocab.txt", "tokenizer_config.json"), "tokenizer"),
        (_without("tokenizer.json", "vocab.txt"), "tokenizer"),
        (_cut_tokenizer, "has no usable tokenizer"),
        (_other_vocabulary, "has 21128 entries but the model 30000"),
        (_garbage_manifest, "manifest.json"),
        (shutil.rmtree, "is not a folder"),
    ],
)
def test_model(harm: Callable[[Path], None], expected: str, bench: Fails, model: Path):
    harm(model)
    assert expected in bench("--task", "bq", "--seeds", "1", model=model)


def test_hub_model_offline(bench: Fails):
    message = bench("--task", "bq", model="nobody/no-such-model")
    assert "nobody/no-such-model is neither a folder nor a model that the Hub gives" in message


def test_record_edited_by_hand(fails: Fails, tmp_path: Path):
    """Named, and no table is written."""
    record = next((Path(__file__).parent.parent / "results" / "runs").rglob("seed-00.json"))
    copy = tmp_path / "runs" / Path(*record.parts[-4:])
    copy.parent.mkdir(parents=True)
    content = json.loads(record.read_text("utf-8"))
    content["scores"]["dev"] = dict.fromkeys(content["scores"]["dev"], 99.0)
    copy.write_text(json.dumps(content), "utf-8")
    message = fails("benchmarks.tables", "--results", tmp_path / "runs", "--out", tmp_path / "tables")
    assert "seed-00.json was changed after it was written" in message
    assert not (tmp_path / "tables").exists()


# --- two runs on one folder -----------------------------------------------------------------------


def test_folder_of_another_run(fails: Fails, tmp_path: Path, text: Path, corpus: Path, tiny_model: Path):
    out = tmp_path / "out"
    with hold(out):
        assert "is held by another run" in fails("corpus.build", text, "--out", out)
        assert "is held by another run" in fails("pretrain.train", "tiny", "--corpus", corpus, "--out", out)
    assert [path.name for path in out.iterdir()] == [".lock"]


def test_records_of_another_run(
    fails: Fails, tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
):
    def held(folder: Path, seeds: object) -> None:
        raise provenance.UserError(f"{folder} is held by another run")

    monkeypatch.setattr("benchmarks.run.hold_seeds", held)
    folders = ("--data", DATA, "--results", tmp_path / "runs")
    assert "is held by another run" in fails("benchmarks.run", tiny_model, "--task", "bq", *folders)
