"""What a user of benchmarks gets wrong: one sentence, exit status 1, nothing left half-written."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import provenance

DATA = Path(__file__).parents[2] / "benchmarks" / "sample"
FAKE = '{"data": [{"context": "CONTEXT", "qas": [{"id": "1", "question": "", "answers": ["FAKE"]}]}]}'
Fails = Callable[..., str]


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
    record = next((Path(__file__).parents[2] / "results" / "runs").rglob("seed-00.json"))
    copy = tmp_path / "runs" / Path(*record.parts[-4:])
    copy.parent.mkdir(parents=True)
    content = json.loads(record.read_text("utf-8"))
    content["scores"]["dev"] = dict.fromkeys(content["scores"]["dev"], 99.0)
    copy.write_text(json.dumps(content), "utf-8")
    message = fails("benchmarks.tables", "--results", tmp_path / "runs", "--out", tmp_path / "tables")
    assert "seed-00.json was changed after it was written" in message
    assert not (tmp_path / "tables").exists()


def test_records_of_another_run(
    fails: Fails, tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
):
    def held(folder: Path, seeds: object) -> None:
        raise provenance.UserError(f"{folder} is held by another run")

    monkeypatch.setattr("benchmarks.run.hold_seeds", held)
    folders = ("--data", DATA, "--results", tmp_path / "runs")
    assert "is held by another run" in fails("benchmarks.run", tiny_model, "--task", "bq", *folders)
