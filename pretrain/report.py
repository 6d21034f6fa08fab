"""What a run shows and logs: console, log.jsonl, TensorBoard."""

from __future__ import annotations

import contextlib
import json
import math
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from provenance import UserError, write_text

LOG, CURVES = "log.jsonl", "tensorboard"
LONG = 7 * 86400  # seconds above which a run is warned of
LINE_SECONDS = 30  # where there is no terminal, a line at most this often


def duration(seconds: float) -> str:
    """``seconds`` for a person: ``45 s``, ``12 min``, ``3 h 05 min``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def _finite(entry: dict[str, Any]) -> dict[str, Any]:
    """``entry`` with None for what is not finite (losses of a skipped step), which JSON cannot say."""
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in entry.items()}


def losses(entry: dict[str, Any]) -> str:
    """The losses among ``entry`` for a person, nats."""
    named = [f"{k.removesuffix('_loss')} {v:.4f}" for k, v in entry.items() if k.endswith("_loss")]
    line = f"entropy of the fake rate {entry['fake_entropy']:.4f}" if "fake_entropy" in entry else ""
    return ", ".join([f"loss {entry['loss']:.2f}", *named, *([line] if line else [])])


def _is_score(name: str) -> bool:
    return name.endswith("_accuracy") or name == "auc"


@contextlib.contextmanager
def _room_for(path: Path) -> Iterator[None]:
    """Name ``path`` where it cannot be written, as on a full disk."""
    try:
        yield
    except OSError as error:
        raise UserError(
            f"{path} cannot be written ({error.strerror}); mend that, then go on with --resume"
        ) from error


class Report:
    """Writes ``out/log.jsonl`` and TensorBoard curves, shows where a run stands; ``quiet`` does nothing."""

    def __init__(self, out: Path, steps: int, quiet: bool = False) -> None:
        self.out, self.steps, self.quiet = out, steps, quiet
        self.console = Console(quiet=quiet, highlight=False)
        self.progress = Progress(
            TextColumn("step"),
            MofNCompleteColumn(),
            BarColumn(),
            TextColumn("{task.fields[state]}"),
            TimeRemainingColumn(),
            console=self.console,
            disable=quiet or not self.console.is_terminal,
        )
        self.writer: Any = None
        self.task: Any = None
        self.first = 0
        self.began = self.shown = time.monotonic()

    def __enter__(self) -> Report:
        self.hook = threading.excepthook
        threading.excepthook = self._of_a_thread
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.task is not None:
            self.progress.stop()
        if self.writer is not None:
            with contextlib.suppress(OSError):  # log.jsonl holds the same
                self.writer.close()
        threading.excepthook = self.hook

    def _of_a_thread(self, failed: threading.ExceptHookArgs) -> None:
        """TensorBoard writes in a thread; what failed there is raised at its next call: no traceback here."""
        if not isinstance(failed.exc_value, OSError):
            self.hook(failed)

    def say(self, text: str) -> None:
        """Print a line."""
        self.console.print(text, soft_wrap=True, markup=False)

    def start(self, step: int, tensorboard: bool) -> None:
        """Begin at ``step``: log lines after it, from before an interruption, are dropped."""
        if self.quiet:
            return
        log = self.out / LOG
        lines = log.read_text(encoding="utf-8").split("\n") if log.exists() else []
        kept = []
        for line in lines:
            try:
                if json.loads(line)["step"] <= step:
                    kept.append(line + "\n")
            except (ValueError, KeyError):
                continue  # the last line of a killed run may be half a line
        write_text(log, "".join(kept))
        if tensorboard:
            from torch.utils.tensorboard import SummaryWriter

            with _room_for(self.out / CURVES):
                self.writer = SummaryWriter(str(self.out / CURVES), purge_step=step + 1)
        self.first = step
        self.began = self.shown = time.monotonic()
        self.progress.start()
        self.task = self.progress.add_task("", total=self.steps, completed=step, state="")

    def advance(self, step: int) -> None:
        """One more step is done; the first ten set the pace for a first estimate."""
        if self.task is not None:
            self.progress.update(self.task, completed=step)
        if step - self.first == 10 < self.steps - self.first and not self.quiet:
            left = self._left(step)
            self.say(f"at the pace of the first 10 steps the rest takes {duration(left)}")
            if left > LONG:
                self.say("warning: that is more than 7 days; lower --steps, or use more processes or a GPU")

    def _left(self, step: int) -> float:
        """Seconds that the steps after ``step`` take at the pace so far."""
        return (time.monotonic() - self.began) / max(1, step - self.first) * (self.steps - step)

    def log(self, entry: dict[str, Any]) -> None:
        """Append ``entry`` to the log and the curves, and show it."""
        if self.quiet:
            return
        with _room_for(self.out / LOG), open(self.out / LOG, "a", encoding="utf-8", newline="\n") as file:
            file.write(json.dumps(_finite(entry), allow_nan=False) + "\n")
        if self.writer is not None:
            with _room_for(self.out / CURVES):
                for name, value in entry.items():
                    if name != "step":
                        self.writer.add_scalar(name, value, entry["step"])
        step, now = entry["step"], time.monotonic()
        held = {k.removeprefix("heldout_"): v for k, v in entry.items() if k.startswith("heldout_")}
        seen = {k: v for k, v in entry.items() if not k.startswith("heldout_")}
        state = f"{losses(seen)}, {entry['tokens_per_second']:,.0f} tokens/s"
        if self.task is not None:
            self.progress.update(self.task, state=state)
        if held:
            scores = ", ".join(f"{k.replace('_', ' ')} {v:.1f} %" for k, v in held.items() if _is_score(k))
            self.say(f"step {step:,} held-out: {losses(held)}{', ' if scores else ''}{scores}")
        if not self.console.is_terminal and (now - self.shown > LINE_SECONDS or step == self.steps):
            self.shown = now
            self.say(f"step {step:,}/{self.steps:,}  {state}, {duration(self._left(step))} left")
