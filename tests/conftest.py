"""For all tests: one thread a process, no network, the same examples each time, the vocabulary, real data."""

import importlib
import os
import random

# Before torch is imported: tests run beside each other, and one thread gives the same sums everywhere.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings
from transformers import ElectraConfig, ElectraForPreTraining

import provenance
from corpus import vocab

torch.set_num_threads(1)

# A change decides whether a test passes, not luck; `--hypothesis-profile=search` looks further, at random.
settings.register_profile(
    "same",
    max_examples=200,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],  # it goes by the clock
)
settings.register_profile(
    "search",
    max_examples=20_000,
    derandomize=False,
    database=None,
    deadline=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile("same")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """A test draws the same numbers in any order of tests, and so do the fixtures it is the first to need."""
    torch.manual_seed(0)
    random.seed(0)


@pytest.fixture(scope="session")
def vocab_path() -> Path:
    """The 21128-line vocabulary that `make setup` fetched and verified."""
    return vocab.vocab_path()


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real task files and text; tests that ask for it are marked `real`."""
    folder = os.environ.get("ZH_ELECTRA_REAL_DATA")
    if not folder:
        pytest.skip("ZH_ELECTRA_REAL_DATA is not set")
    return Path(folder)


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory, vocab_path: Path) -> Path:
    """A transformers folder: a random two-layer ELECTRA discriminator of width 32."""
    folder = tmp_path_factory.mktemp("tiny-model")
    torch.manual_seed(0)
    config = ElectraConfig(
        vocab_size=21128,
        embedding_size=32,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
    )
    ElectraForPreTraining(config).save_pretrained(folder)
    vocab.save_tokenizer(vocab.tokenizer(vocab_path), vocab_path, folder)
    return folder


@pytest.fixture
def fails(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., str]:
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
