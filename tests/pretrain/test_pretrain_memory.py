"""Memory: it does not grow with the shapes of batches, and the plan says how much is needed."""

import dataclasses
import gc
import re
import subprocess
import sys
import weakref
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
import torch
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from pretrain.config import PRESETS, Runtime, Size
from pretrain.data import Batch
from pretrain.memory import _batch, _kept, available_memory, free_disk, kept_by_a_pass, room_of_a_process
from pretrain.model import Electra
from pretrain.objectives import OBJECTIVES, Objective, build_model
from pretrain.plan import plan

SHAPE = Size(layers=1, hidden=32, heads=2, embedding=16, dropout=0.0, generator_fraction=1.0)


def batch_of(rows: int, length: int, chosen: int) -> Batch:
    """Random ids, the first of them chosen."""
    ids = torch.randint(672, 7992, (rows, length))
    return Batch(
        input_ids=ids,
        masked_ids=ids,
        token_type_ids=torch.zeros_like(ids),
        positions=torch.arange(chosen),
        attention_mask=None,
        tokens=ids.numel(),
    )


class Products(TorchDispatchMode):
    """Shapes of the matrix products that are computed meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.shapes: set[tuple] = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function.overloadpacket in (torch.ops.aten.mm, torch.ops.aten.addmm, torch.ops.aten.bmm):
            given = [tuple(a.shape) for a in args if isinstance(a, torch.Tensor)]
            if args[-1].dtype == torch.bfloat16:
                self.shapes.add((function.overloadpacket, *given))
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_numbers_of_chosen_positions_make_no_new_products(objective):
    """For each shape of a bf16 product oneDNN keeps a kernel; 33 to 64 positions share theirs."""
    config = dataclasses.replace(PRESETS["tiny"], objective=objective, shape=SHAPE, sharing="none")
    trained = Objective(build_model(config), config)
    seen = []
    for chosen in (40, 33, 51, 64):
        batch = batch_of(4, 32, chosen)
        with Products() as products:
            with torch.autocast("cpu", torch.bfloat16):
                loss = trained(batch, 0).loss(chosen, batch.tokens)
            loss.backward()
        seen.append(products.shapes)
    assert seen[0]
    assert seen[0] == seen[1] == seen[2] == seen[3]


def test_filling_up_changes_no_number():
    """Loss and gradients are those of the chosen positions alone, written plainly."""
    torch.manual_seed(0)
    model, batch = Electra(SHAPE, sharing="none"), batch_of(4, 32, 37)
    total, sampled, guessed = model.fill_in("generator", batch.masked_ids, batch)
    total.backward()
    found = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    network = model.generator
    hidden = network.electra(batch.masked_ids).last_hidden_state.flatten(0, 1)[batch.positions]
    logits = network.generator_lm_head(network.generator_predictions(hidden))
    plain = functional.cross_entropy(logits, batch.input_ids.flatten()[:37], reduction="sum")
    plain.backward()
    assert total.item() == pytest.approx(plain.item(), rel=1e-5)
    assert len(sampled) == len(guessed) == 37
    expected = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        assert np.allclose(found[name], gradient, rtol=1e-4, atol=1e-5), name
    logits_at = model.detect("discriminator", batch.input_ids, batch, batch.positions)
    everywhere = model.detect("discriminator", batch.input_ids, batch).flatten()
    assert torch.allclose(logits_at, everywhere[:37], atol=1e-5)
    log_probabilities = model.log_probabilities("generator", hidden)
    assert torch.allclose(log_probabilities, logits.log_softmax(-1), atol=1e-5)


@pytest.mark.parametrize("objective", ["rtd", "mlm", "all-tokens-mlm", "two-stage"])
def test_what_a_pass_keeps_is_a_straight_line(objective):
    """Extrapolated from one and two rows, it is what a pass over the whole micro-batch keeps."""
    shape = dataclasses.replace(SHAPE, hidden=64, embedding=64)
    config = dataclasses.replace(
        PRESETS["tiny"],
        **{"objective": objective, "shape": shape, "sharing": "none", "dtype": "bf16"},
        **{"neighbour_heads": False, "mask_fraction": 0.15, "steps": 10},
    )
    trained, device = Objective(build_model(config), config), torch.device("cpu")
    batch = _batch(16, 128, 16 * 19, device)
    whole = max(_kept(trained, batch, s.first, device) for s in OBJECTIVES[objective].stages(config))
    assert kept_by_a_pass(trained, 16, device) == pytest.approx(whole, rel=0.05)


def test_no_gradients_nothing_kept():
    config = dataclasses.replace(PRESETS["tiny"], shape=SHAPE, sharing="none", dtype="fp32")
    trained = Objective(build_model(config).requires_grad_(False), config)
    assert _kept(trained, _batch(2, 32, 32, torch.device("cpu")), 0, torch.device("cpu")) == 0


def test_nothing_of_the_measured_passes_stays():
    """Every tensor that was made for them is gone, without waiting for the collector of cycles."""
    shape = dataclasses.replace(SHAPE, dropout=0.1)
    config = dataclasses.replace(PRESETS["tiny"], shape=shape, dtype="fp32")
    trained = Objective(build_model(config, cheap_dropout=True), config)
    made: list[weakref.ref] = []

    def note(module, given, found) -> None:
        made.extend(weakref.ref(x) for x in found if isinstance(x, torch.Tensor))

    for module in trained.modules():
        if type(module).__name__ == "ElectraSelfAttention":  # probabilities: a function that saves its output
            module.register_forward_hook(note)
    gc.collect()
    gc.disable()
    try:
        kept_by_a_pass(trained, 4, torch.device("cpu"))
    finally:
        gc.enable()
    assert len(made) == 2 * 2 * 3  # outputs, networks, passes
    assert all(reference() is None for reference in made)


def test_the_plan_warns_of_memory_and_disk(tmp_path, monkeypatch):
    given = {"rows": 10_000, "micro": 8, "processes": 2, "device": torch.device("cpu"), "parameters": 2**20}
    config = dataclasses.replace(PRESETS["tiny"], batch_size=16)

    def said(memory: int, disk: int) -> str:
        monkeypatch.setattr("pretrain.plan.room_of_a_process", lambda device, n: memory * 2**20 // n)
        monkeypatch.setattr("pretrain.plan.free_disk", lambda folder: disk * 2**20)
        return plan("tiny", config, Runtime(), **given, kept=34 * 2**20, out=tmp_path)

    calm = said(2 * 900, 36)
    assert "16 MiB each for weights, gradients and moments, 34 MiB for a micro-batch" in calm
    assert "850 MiB for the program: about 900 MiB of memory each" in calm
    assert "checkpoint of 12 MiB" in calm
    assert "warning" not in calm
    assert "warning: there are only 899 MiB of memory for each process; lower --micro-batch" in said(1798, 36)
    assert f"only 35 MiB of disk are free for {tmp_path}, and 3 checkpoints" in said(1800, 35)
    for step in (10, 20):
        (tmp_path / "checkpoints" / f"step-{step}").mkdir(parents=True)
    assert "warning" not in said(1800, 12)


def test_free_room_of_a_folder_to_come(tmp_path):
    assert free_disk(tmp_path / "a" / "b") == pytest.approx(free_disk(tmp_path), rel=0.1)


def test_what_a_process_holds_already_is_part_of_its_room(monkeypatch):
    """Else weights and libraries would count twice against what is free."""
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=10 * 2**30))
    held = psutil.Process().memory_info().rss
    assert room_of_a_process(torch.device("cpu"), 1) == pytest.approx(10 * 2**30 + held, rel=0.01)
    assert room_of_a_process(torch.device("cpu"), 5) == pytest.approx(2 * 2**30 + held, rel=0.01)


MEASURED = """
import re, resource, sys
from pretrain.command import parse
from pretrain.train import train

train(parse(sys.argv[1:]))
print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the program's share was measured on Linux")
@pytest.mark.parametrize(("size", "rows"), [("mini", 16), ("small", 32)])
def test_the_estimate_is_what_a_run_takes(size, rows, corpus, tmp_path):
    """Within 15 % of the peak of the resident set, checkpoint and export included."""
    given = [size, "--corpus", str(corpus), "--out", str(tmp_path), "--length", "128", "--no-tensorboard"]
    given += ["--batch-size", str(rows), "--steps", "10", "--warmup", "1", "--eval-rows", "8"]
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *given],
        **{"capture_output": True, "text": True, "cwd": Path(__file__).parents[2]},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    planned = float(re.search(r"about ([\d,]+) MiB of memory each", done.stdout)[1].replace(",", ""))
    peak = float(re.search(r"^peak ([\d.]+)", done.stdout, re.M)[1])
    print(f"{size} {rows} x 128: planned {planned:.0f} MiB, peak {peak:.0f} MiB")
    assert planned == pytest.approx(peak, rel=0.15)


MIB = 2**20


@pytest.mark.parametrize(
    ("line", "root", "limit", "use", "droppable", "unlimited"),
    [
        ("0::/slurm/job", "", "memory.max", "memory.current", "inactive_file", "max"),
        (
            *("4:memory:/slurm/job", "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
            *("total_inactive_file", str(2**63 - 4096)),
        ),
    ],
)
def test_memory_that_a_control_group_leaves(
    line, root, limit, use, droppable, unlimited, tmp_path, monkeypatch
):
    """Half a GiB of a limit of one is used, a quarter of that by files; the group above allows 2.5 GiB."""
    groups, own, machine = tmp_path / "groups", tmp_path / "cgroup", SimpleNamespace(available=8192 * MIB)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: machine)
    job = groups / root / "slurm" / "job"
    job.mkdir(parents=True)
    own.write_text(f"1:cpu:/other\n{line}\n")
    assert available_memory(groups, own) == 8192 * MIB  # no limits, no files
    for group, most in ((job, 1024 * MIB), (job.parent, 2560 * MIB)):
        (group / limit).write_text(f"{most}\n")
        (group / use).write_text(f"{512 * MIB}\n")
        (group / "memory.stat").write_text(f"anon 1\n{droppable} {128 * MIB}\n")
    assert available_memory(groups, own) == 640 * MIB
    (job / limit).write_text(f"{unlimited}\n")
    assert available_memory(groups, own) == 2176 * MIB
    machine.available = 512 * MIB
    assert available_memory(groups, own) == 512 * MIB
    assert available_memory(groups, tmp_path / "absent") == 512 * MIB
