"""A packed corpus of synthetic rows, as corpus.build writes it."""

from pathlib import Path

import datasets
import numpy as np
import pytest

from provenance import write_manifest

CLS, SEP = 101, 102


def pack(folder: Path, vocab: Path, train: int = 200, heldout: int = 20, length: int = 128) -> Path:
    """Write ``folder`` with rows whose tokens follow one another, so that there is something to learn."""
    random = np.random.default_rng(0)
    features = datasets.Features(
        {
            "input_ids": datasets.List(datasets.Value("uint16")),
            "token_type_ids": datasets.List(datasets.Value("uint8")),
            "word_starts": datasets.List(datasets.Value("bool")),
        }
    )
    for split, count in (("train", train), ("heldout", heldout)):
        rows = []
        for _ in range(count):
            body = int(random.integers(length // 2, length - 2))
            ids = 700 + (random.integers(50) + np.arange(body)) % 50
            second = body // 2
            rows.append(
                {
                    "input_ids": [CLS, *ids.tolist(), SEP],
                    "token_type_ids": [0] * (body + 2 - second) + [1] * second,
                    "word_starts": [True, *(random.random(body) < 0.6).tolist(), True],
                }
            )
        datasets.Dataset.from_list(rows, features=features).save_to_disk(
            str(folder / f"rows-{length}" / split)
        )
    (folder / "vocab.txt").write_bytes(vocab.read_bytes())
    write_manifest(folder, stage="corpus.build", config={"synthetic": True})
    return folder


@pytest.fixture(scope="session")
def corpus(tmp_path_factory, vocab_path) -> Path:
    """A corpus folder with rows-128."""
    datasets.disable_progress_bars()
    return pack(tmp_path_factory.mktemp("corpus"), vocab_path)
