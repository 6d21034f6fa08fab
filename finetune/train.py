"""One fine-tuning run: a model, training examples, a seed; out come predictions for every split.

The seed fixes the new head, the order of the examples and the dropout masks, so that the same run on the
same CPU gives the same predictions to the last bit whatever ran before it in the process.
"""

from __future__ import annotations

import contextlib
import math
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from finetune import classify, span
from finetune.batches import model_inputs, parts_of, pass_cost, prediction_order, random_batches
from finetune.config import FinetuneConfig, Runtime
from finetune.folder import locate
from finetune.layers import layer_groups
from finetune.models import Kind, load_model, longest_input
from finetune.tokens import Encoder, load_encoder
from pretrain.device import autocast, pick_device
from pretrain.dropout import use_cheap_dropout
from pretrain.optim import Adam, clipping, learning_rate
from pretrain.quiet import quiet
from provenance import MANIFEST, UserError, atomic_folder, write_manifest

Progress = Callable[[int, int, float], None]
Row = tuple[np.ndarray, np.ndarray]

REPORT_EVERY = 10  # updates between two looks at the loss: each look waits for a GPU


@dataclass(frozen=True)
class Result:
    """What a run gives.

    ``predictions`` holds for each split one dict per example, in the order given: ``{id, prediction: int,
    probabilities}`` for texts, ``{id, prediction: str, n_best: [{text, score}]}`` for spans. ``losses`` is
    the mean loss of each update, ``counts`` what features dropped or changed, per split.
    """

    predictions: dict[str, list[dict[str, Any]]]
    losses: list[float]
    seconds: float
    counts: dict[str, dict[str, int]]
    config: FinetuneConfig
    seed: int
    source: Path
    network: transformers.PreTrainedModel
    tokenizer: Any

    def save(self, folder: Path | str) -> None:
        """Write weights, configuration, tokenizer and manifest as a transformers folder, atomically."""
        parent = self.source if (self.source / MANIFEST).is_file() else None
        with atomic_folder(folder) as partial:
            self.network.save_pretrained(partial)
            self.tokenizer.save_pretrained(partial)
            if (self.source / "vocab.txt").is_file():
                shutil.copyfile(self.source / "vocab.txt", partial / "vocab.txt")
            write_manifest(
                partial,
                stage="finetune.train",
                config=self.config,
                identity={"config": self.config, "seed": self.seed},
                parent=parent,
                counts=self.counts,
                seed=self.seed,
                name=Path(folder).name,
            )


# --- features of either kind ----------------------------------------------------------------------


@dataclass(frozen=True)
class Split:
    """Examples with their input rows; ``features`` of spans, ``targets`` where they are trained on."""

    examples: Sequence[Any]
    rows: list[Row]
    targets: torch.Tensor | None
    features: span.Features | None


def prepare(
    kind: Kind,
    examples: Sequence[Any],
    encoder: Encoder,
    config: FinetuneConfig,
    counts: Counter[str],
    *,
    training: bool,
) -> Split:
    """Features of either kind; ``counts`` takes what was cut or left out.

    Raises:
        UserError: a training example has no label, or there is no room beside a question.
    """
    if kind == "span":
        features = span.encode(examples, encoder, config, training=training, counts=counts)
        targets = torch.tensor([window.target for window in features.windows], dtype=torch.long)
        return Split(examples, [window.row for window in features.windows], targets, features)
    rows = classify.encode(examples, encoder, config.max_length, counts)
    labels = None
    if training:
        for example in examples:
            if example.label is None:
                raise UserError(f"training example {example.id} has no label; give it one or leave it out")
        labels = torch.tensor([example.label for example in examples], dtype=torch.long)
    return Split(examples, rows, labels, None)


def read_out(kind: Kind, split: Split, logits: list[np.ndarray], config: FinetuneConfig) -> list[dict]:
    """Predictions from the logits of every row (:class:`Result` has their form)."""
    if kind == "text":
        shape = (len(logits), -1) if logits else (0, 1)
        return classify.predictions(split.examples, np.array(logits, dtype=np.float32).reshape(shape))
    assert split.features is not None
    pairs = [(pair[0], pair[1]) for pair in logits]
    return span.predictions(split.examples, split.features, pairs, config.max_answer_length)


# --- the run --------------------------------------------------------------------------------------


@contextlib.contextmanager
def threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def place(network: transformers.PreTrainedModel, kind: Kind, runtime: Runtime) -> torch.device:
    """Put a network on the device of a run, with the kernels that are fast there, and return the device.

    A saved model must go the same way: in bf16 another kernel of attention gives other last digits.
    """
    device = torch.device(runtime.device) if runtime.device else pick_device()
    if device.type == "cpu":
        with quiet():  # some families keep an attention of their own, and transformers says so
            use_cheap_dropout(network)
    if kind == "text":
        classify.first_token_only(network)
    torch.nn.Module.to(network, device)
    return device


def finetune(
    model: str | Path,
    kind: Kind,
    train: Sequence[Any],
    evaluate: Mapping[str, Sequence[Any]],
    *,
    config: FinetuneConfig,
    seed: int,
    num_labels: int | None = None,
    runtime: Runtime | None = None,
    on_progress: Progress | None = None,
) -> Result:
    """Fine-tune ``model`` on ``train`` and predict every example of every split of ``evaluate``.

    Args:
        model: folder or Hub id of an encoder.
        kind: ``text`` for :class:`~finetune.examples.TextExample`, ``span`` for ``SpanExample``.
        config: what changes the numbers.
        seed: fixes head, order and dropout.
        num_labels: classes, for ``text``.
        runtime: threads, device and the like.
        on_progress: called with (done, total, loss); updates and prediction batches both count as done.

    Raises:
        UserError: the model cannot be used, or there is nothing to train on.
    """
    runtime = runtime or Runtime()
    started = time.perf_counter()
    folder = locate(model)
    encoder = load_encoder(model, map_quotes=config.map_quotes, cache=runtime.cache)
    counts: dict[str, Counter[str]] = {"train": Counter(), **{name: Counter() for name in evaluate}}
    learned = prepare(kind, train, encoder, config, counts["train"], training=True)
    if not learned.rows:
        raise UserError("there is no training example that can be used; check the training file")
    asked = {
        name: prepare(kind, examples, encoder, config, counts[name], training=False)
        for name, examples in evaluate.items()
    }
    torch.manual_seed(seed)  # the head's weights, then the dropout masks
    network = load_model(model, kind, num_labels)
    positions = longest_input(network) or config.max_length
    if config.max_length > positions:
        raise UserError(
            f"{model} takes {positions} tokens, not {config.max_length}; give a smaller --max-length"
        )
    device = place(network, kind, runtime)
    batch = config.batch_size
    updates = config.epochs * math.ceil(len(learned.rows) / batch)
    orders = {
        name: prediction_order([len(ids) for ids, _ in split.rows], runtime.eval_batch_size)
        for name, split in asked.items()
    }
    total = updates + sum(map(len, orders.values()))
    report = on_progress or (lambda done, total, loss: None)
    with threads(runtime.threads):
        run = Run(kind, network, encoder, config, device, lambda done, loss: report(done, total, loss))
        losses, skipped = run.fit(learned, seed, updates)
        counts["train"]["skipped_updates"] = skipped
        predictions, done = {}, updates
        for name, split in asked.items():
            logits = run.predict(split.rows, orders[name], done, losses[-1] if losses else math.nan)
            predictions[name] = read_out(kind, split, logits, config)
            done += len(orders[name])
    return Result(
        predictions=predictions,
        losses=losses,
        seconds=time.perf_counter() - started,
        counts={name: dict(counter) for name, counter in counts.items()},
        config=config,
        seed=seed,
        source=folder,
        network=network,
        tokenizer=encoder.tokenizer,
    )


@dataclass(frozen=True)
class Run:
    """What training and prediction share."""

    kind: Kind
    network: transformers.PreTrainedModel
    encoder: Encoder
    config: FinetuneConfig
    device: torch.device
    report: Callable[[int, float], None]

    def forward(self, rows: Sequence[Row]) -> tuple[Any, torch.Tensor]:
        """The network's output for a batch of rows, and its attention mask (rows, tokens)."""
        with_types = getattr(self.network.config, "type_vocab_size", 0) > 1
        inputs = model_inputs(rows, self.encoder.pad, self.config.max_length, with_types=with_types)
        full = bool(inputs["attention_mask"].all())
        inputs = {name: tensor.to(self.device) for name, tensor in inputs.items()}
        mask = inputs["attention_mask"]
        if full:  # nothing is hidden: without a mask no layer adds one to its (tokens, tokens) scores
            del inputs["attention_mask"]
        with autocast(self.device, self.config.dtype):
            return self.network(**inputs), mask

    def parts(self, rows: Sequence[Row], batch: Sequence[int]) -> list[list[int]]:
        """The indices of a batch into ``rows``, in the parts that go through the network one by one."""
        lengths = [len(rows[index][0]) for index in batch]
        parts = parts_of(lengths, self.config.max_length, pass_cost(self.device.type))
        return [[batch[place] for place in part] for part in parts]

    def fit(self, split: Split, seed: int, updates: int) -> tuple[list[float], int]:
        """Mean loss of each update, and the number of updates left out because the gradient overflowed."""
        config, network = self.config, self.network
        assert split.targets is not None
        named = list(network.named_parameters())
        parameters = [parameter for _, parameter in named]
        optimizer = Adam(
            layer_groups(
                named,
                layers=network.config.num_hidden_layers,
                prefix=network.base_model_prefix,
                decay=config.layer_decay,
                weight_decay=config.weight_decay,
            ),
            lr=config.learning_rate,
            bias_correction=config.optimizer == "adamw",
        )
        criterion = span.loss if self.kind == "span" else classify.loss
        # An order of its own: it must not depend on how many numbers the dropout of a batch draws.
        generator = torch.Generator().manual_seed(seed)
        losses: list[torch.Tensor] = []
        skipped = torch.zeros((), device=self.device)
        warmup = int(config.warmup * updates)
        network.train()
        for _ in range(config.epochs):
            for batch in random_batches(len(split.rows), config.batch_size, generator):
                rate = learning_rate(len(losses), peak=config.learning_rate, total=updates, warmup=warmup)
                for group in optimizer.param_groups:
                    group["lr"] = rate * group["scale"]
                batch_loss = torch.zeros((), device=self.device)
                for part in self.parts(split.rows, batch):
                    output, mask = self.forward([split.rows[index] for index in part])
                    loss = criterion(output, split.targets[part].to(self.device), mask)
                    loss = loss * (len(part) / len(batch))  # so that the parts add up to the batch's mean
                    loss.backward()
                    batch_loss += loss.detach()
                divide_by, skip = clipping(parameters, config.clip)
                optimizer.step(divide_by=divide_by, skip=skip)
                optimizer.zero_grad(set_to_none=True)
                losses.append(batch_loss)
                skipped += skip
                if len(losses) % REPORT_EVERY == 0 or len(losses) == updates:
                    self.report(len(losses), float(losses[-1]))
        network.eval()
        return [float(loss) for loss in losses], int(skipped)

    @torch.inference_mode()
    def predict(
        self, rows: Sequence[Row], order: Sequence[Sequence[int]], done: int, loss: float
    ) -> list[np.ndarray]:
        """Logits in float32 of each row, in the order of ``rows``: (classes,), or (2, tokens) for spans."""
        found: list[np.ndarray] = [np.empty(0)] * len(rows)
        for number, batch in enumerate(order, start=1):
            for part in self.parts(rows, batch):
                output, _ = self.forward([rows[index] for index in part])
                logits = (
                    output.logits
                    if self.kind == "text"
                    else torch.stack((output.start_logits, output.end_logits), dim=1)
                )
                for index, row in zip(part, logits.float().cpu().numpy(), strict=True):
                    found[index] = row if self.kind == "text" else row[:, : len(rows[index][0])].copy()
            self.report(done + number, loss)
        return found
