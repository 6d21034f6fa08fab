"""Several processes on one machine: ``python -m pretrain.launch 4 SIZE --corpus DIR --out DIR``.

What follows the number goes to :mod:`pretrain.train`. torchrun starts and watches the processes; unlike the
program of that name this one ends with status 0 when SIGTERM made them save, and names the one that failed.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import signal
import sys
from collections.abc import Iterator, Sequence

from provenance import UserError, run_cli

USAGE = "usage: python -m pretrain.launch PROCESSES SIZE --corpus DIR --out DIR ..."
HELP = """\
Pretrain in PROCESSES processes on this machine, one for each GPU or for a share of the CPU's cores; --threads
is of each. What follows the number goes to pretrain.train: python -m pretrain.train --help.

SIGTERM makes them save and ends with status 0. If one fails, the others stop and it is named."""
SAVING = 600  # seconds that processes have to save after SIGTERM


@contextlib.contextmanager
def stop_on_sigterm() -> Iterator[list[int]]:
    """Yield a list that is no longer empty once SIGTERM came."""
    seen: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: seen.append(number))
    try:
        yield seen
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def name_lost_process() -> Iterator[None]:
    """In one of several processes: another one that is gone becomes a sentence, where gloo or nccl fail."""
    try:
        yield
    except RuntimeError as error:
        if not re.search(r"closed by peer|reset by peer|NCCL|[Tt]imed out", str(error)):
            raise
        rank = os.environ.get("RANK", "0")
        raise UserError(f"process {rank} lost another process; see what that one says") from error


def launch(processes: int, arguments: Sequence[str]) -> None:
    """Run ``pretrain.train`` with ``arguments`` in ``processes`` processes and wait for them.

    Raises:
        UserError: one of them failed, or had to be killed.
    """
    from torch.distributed import run
    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    os.environ.setdefault("OMP_NUM_THREADS", "1")  # torchrun's choice as well, but with a warning
    for name in logging.root.manager.loggerDict:
        if name.startswith("torch.distributed"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
    options = ["--standalone", "--nproc-per-node", str(processes), "--shutdown-timeout", str(SAVING)]
    try:
        run.run(run.parse_args([*options, "-m", "pretrain.train", *arguments]))
    except SignalException as stopped:
        if stopped.sigval == signal.SIGTERM:
            return
        raise KeyboardInterrupt from None
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()
        raise UserError(
            f"process {rank} of {processes} ended with status {failure.exitcode}, the others were stopped; "
            "mend what it says above, then go on with --resume"
        ) from None


def main() -> None:
    """Entry point of ``python -m pretrain.launch``."""
    from pretrain.command import corpus_folder, parse  # here, since train imports this module

    number, *arguments = sys.argv[1:] or [""]
    if number in ("-h", "--help"):
        print(f"{USAGE}\n\n{HELP}")
        return
    if not number.isdecimal() or int(number) < 1 or not arguments:
        print(USAGE, file=sys.stderr)
        sys.exit(2)
    corpus_folder(parse(arguments).corpus)  # what is wrong is said once, and not by every process
    launch(int(number), arguments)


if __name__ == "__main__":
    run_cli(main)
