"""The command line: ``python -m benchmarks.speed [WHAT ...]``."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import torch
import tyro
from rich.console import Console

from benchmarks.arguments import AnyFolder, AnyInt, Device, Flag, Folder, optional
from benchmarks.speed import corpus, finetune, pretrain
from benchmarks.speed.turns import Measurement, Setting, measure, report
from corpus.inputs.sources import expand_inputs
from pretrain.device import pick_device
from provenance import UserError, run_cli

ROOT = Path(__file__).resolve().parents[2]

MEASURED: dict[str, Callable[[Setting], Measurement]] = {
    "wikitext": corpus.wikitext,
    "wordpiece": corpus.wordpiece,
    "corpus-build": corpus.build,
    "corpus-memory": corpus.memory,
    "pretrain-step-128": pretrain.step_of_128,
    "pretrain-step-512": pretrain.step_of_512,
    "pretrain-processes": pretrain.processes,
    "finetune-pairs": finetune.pairs,
    "finetune-texts": finetune.long_texts,
    "finetune-questions": finetune.questions,
    "finetune-jobs": finetune.jobs,
}


def run(
    what: Annotated[
        tuple[str, ...],
        tyro.conf.Positional,
        optional(
            metavar="[WHAT ...]",
            help=f"measurements to make, of {', '.join(MEASURED)}; by default all.",
        ),
    ] = (),
    device: Device = None,
    quick: Flag = False,
    rounds: int = 5,
    threads: AnyInt = None,
    text: Annotated[tuple[str, ...], optional(metavar="[INPUT ...]")] = (),
    wiki: Annotated[Path, optional(metavar="FILE")] = ROOT / "corpus" / "sample" / "zhwiki-sample.xml",
    tasks: Annotated[Path, optional(metavar="DIR")] = ROOT / "benchmarks" / "sample",
    model: AnyFolder = None,
    out: Folder = Path("results/speed"),
) -> None:
    """Measure our speed against peers in one run and write <what>-<device>.json and .md.

    Args:
        what: names of measurements; by default all.
        device: cpu or cuda; by default cuda where there is one.
        quick: smaller inputs and 3 rounds.
        rounds: turns of each contestant that count; at least 3 (whole builds take fewer).
        threads: CPU threads of a training step; by default PyTorch's choice.
        text: corpus files to build from; by default the bundled sample, repeated.
        wiki: MediaWiki export whose pages are repeated; by default the bundled one.
        tasks: folder of benchmark files to look for in the corpus, and to fine-tune on; by default the
            bundled ones.
        model: folder of a model to fine-tune; by default `mini` with random weights.
        out: folder to write to.
    """
    if rounds < 3:
        raise UserError(f"--rounds is {rounds}; a median needs at least 3")
    if device == "cuda" and not torch.cuda.is_available():
        raise UserError("--device cuda: PyTorch sees no GPU here; use --device cpu")
    if unknown := sorted(set(what) - set(MEASURED)):
        raise UserError(f"nothing called {unknown[0]} is measured; choose from {', '.join(MEASURED)}")
    if threads is not None:
        torch.set_num_threads(threads)
    options = " ".join([*what, *(["--quick"] if quick else [])])
    command = f"python -m benchmarks.speed {options}".strip()
    with tempfile.TemporaryDirectory(prefix="speed-", dir=".") as scratch:
        setting = Setting(
            device=torch.device(device) if device else pick_device(),
            quick=quick,
            scratch=Path(scratch).resolve(),
            text=tuple(path for path in expand_inputs(text) if isinstance(path, Path)),
            wiki=wiki,
            tasks=tasks,
            model=model,
        )
        for name in what or MEASURED:
            measurement = MEASURED[name](setting)
            entries = measure(measurement, 3 if quick else rounds, setting.device)
            page = report(name, measurement, entries, setting, command, out)
            Console().print(page, highlight=False, markup=False, soft_wrap=True)


def main() -> None:
    """Command line."""
    tyro.cli(run, prog="python -m benchmarks.speed")


if __name__ == "__main__":
    run_cli(main)
