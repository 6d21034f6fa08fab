"""The runner: seeds, settings, and whole runs of a tiny random model on one task of each kind."""

import contextlib
import dataclasses
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tyro

from benchmarks.groups import load_groups
from benchmarks.predict import predict_task
from benchmarks.protocol import load
from benchmarks.record import find_records, record_path, write_record
from benchmarks.run import run
from benchmarks.seeds import hold_seeds, parse_seeds
from benchmarks.settings import converted_corpus, resolve
from benchmarks.tasks import get_task
from benchmarks.trial import run_trial
from provenance import UserError, write_manifest

ROOT = Path(__file__).parents[2]
COLOURS = "红黄蓝白黑青紫灰"


def test_seeds_are_a_count_a_range_or_a_list():
    assert parse_seeds("10") == tuple(range(10))
    assert parse_seeds("0-9") == tuple(range(10))
    assert parse_seeds("3,5") == (3, 5)
    assert parse_seeds("3,") == (3,)
    assert parse_seeds("0-2,7,1") == (0, 1, 2, 7)
    for wrong in ("", "0", "a", "5-3", "7,5-3", "1-", "-1"):
        with pytest.raises(ValueError, match="no choice of seeds"):
            parse_seeds(wrong)


@pytest.mark.parametrize(
    ("facts", "task", "rate", "decay"),
    [
        ({"family": "electra", "hidden_size": 256}, "lcqmc", 3e-4, 0.8),
        ({"family": "electra", "hidden_size": 768}, "lcqmc", 1e-4, 0.8),
        ({"family": "electra", "hidden_size": 1024}, "lcqmc", 5e-5, 0.9),
        ({"family": "bert", "hidden_size": 768}, "lcqmc", 2e-5, 1.0),
        ({"family": "bert", "hidden_size": 768}, "xnli", 3e-5, 1.0),
    ],
)
def test_settings_come_from_family_and_task(facts, task, rate, decay):
    config, sources = resolve(get_task(task), facts, {"learning_rate": None, "batch_size": None})
    assert (config.learning_rate, config.layer_decay) == (rate, decay)
    assert (config.max_length, config.batch_size, config.warmup) == (128, 32, 0.1)
    assert sources["max_length"] == "task"
    assert sources["batch_size"] == "default"
    given, sources = resolve(get_task(task), facts, {"learning_rate": 1.0})
    assert given.learning_rate == 1.0
    assert sources["learning_rate"] == "command line"


def test_a_whole_run_then_nothing_is_left_to_do(tiny_model, data, tmp_path, capsys):
    places = {"data": data, "results": tmp_path / "runs", "predictions": tmp_path / "predictions"}
    arguments = {"task": "chnsenticorp", "seeds": (4,), "epochs": 1, "name": "toy", **places}
    run(str(tiny_model), **arguments)
    printed = capsys.readouterr().out
    assert "already finished" not in printed
    assert "ChnSentiCorp*" in printed
    assert "* reduced protocol" in printed
    ((path, _),) = find_records(tmp_path / "runs")
    assert path.name == "seed-04.json"
    written = path.stat().st_mtime_ns
    run(str(tiny_model), **arguments)
    assert "1 of 1 already finished" in capsys.readouterr().out
    assert path.stat().st_mtime_ns == written
    run(str(tiny_model), explain=True, **{**arguments, "seeds": (4, 5)})
    printed = capsys.readouterr().out
    assert "seeds to run: [5]" in printed
    assert "seeds finished: [4], " in printed


def test_no_more_at_once_than_memory_bears(tiny_model, data, tmp_path, capsys, monkeypatch):
    places = {"data": data, "results": tmp_path / "runs", "predictions": tmp_path / "predictions"}
    arguments = {"task": "chnsenticorp", "seeds": (4, 5), "epochs": 1, "name": "toy", **places}
    slots = []
    monkeypatch.setattr(
        "benchmarks.run.run_jobs", lambda trials, at_once, console: slots.append(at_once) or []
    )
    monkeypatch.setattr("benchmarks.run._cores", lambda: 8)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    for room in (2**40, 2 * 2**30, 0):  # one run of this size needs between 1 and 2 GiB
        monkeypatch.setattr("benchmarks.run.available_memory", lambda room=room: room)
        run(str(tiny_model), **arguments)
    assert slots == [2, 1, 1]
    assert capsys.readouterr().out.count("1 at once, not 2: each needs about 1.4 GiB") == 2
    run(str(tiny_model), jobs=3, **arguments)
    assert slots[-1] == 3
    monkeypatch.setattr("torch.cuda.device_count", lambda: 4)  # the main memory has no say
    run(str(tiny_model), **arguments)
    assert slots[-1] == 4


def test_a_record_is_replayed(tiny_model, data, tmp_path, capsys, trial_of):
    """Task, seed and settings come from the record; the predictions are the same to the bit."""
    trial = trial_of("lcqmc", tiny_model, data, tmp_path, seed=3)
    record = run_trial(trial)
    path = record_path(trial.results, "toy", "lcqmc", trial.bench_id, 3)
    places = {"data": data, "results": tmp_path / "again", "predictions": tmp_path / "predictions-again"}
    run(str(tiny_model), replay=path, name="toy", **places)
    assert "not the run" not in capsys.readouterr().out
    ((_, again),) = find_records(tmp_path / "again")
    assert (again.bench_id, again.seed) == (record.bench_id, 3)
    assert again.predictions_sha256 == record.predictions_sha256
    run(str(tiny_model), replay=path, name="toy", lr=1e-5, explain=True, **places)
    printed = capsys.readouterr().out
    assert "not the run of" in printed
    assert "other settings" in printed
    for other in ({"task": "bq"}, {"seeds": (0, 1)}):
        with pytest.raises(UserError, match=r"--from takes task and seed from .*: lcqmc, 3; leave out"):
            run(str(tiny_model), replay=path, name="toy", **other, **places)


def test_a_record_is_not_that_of_the_same_weights_with_another_dropout(tiny_model, data, tmp_path, capsys):
    """The id is over the weights; what config.json says of them is in the record, and compared."""
    places = {"data": data, "results": tmp_path / "runs", "predictions": tmp_path / "predictions"}
    arguments = {"task": "lcqmc", "seeds": (0,), "epochs": 1, "name": "toy", **places}
    run(str(tiny_model), **arguments)
    ((path, record),) = find_records(tmp_path / "runs")
    model = shutil.copytree(tiny_model, tmp_path / "model")
    config = json.loads((model / "config.json").read_text("utf-8"))
    (model / "config.json").write_text(
        json.dumps({**config, "transformers_version": "0", "id2label": {"0": "x"}})
    )
    run(str(model), **arguments)
    assert "1 of 1 already finished" in capsys.readouterr().out
    (model / "config.json").write_text(json.dumps({**config, "hidden_dropout_prob": 0.5}))
    with pytest.raises(UserError, match=r"seed-00\.json is of these weights with another config\.json"):
        run(str(model), **arguments)
    run(str(model), replay=path, explain=True, **{**places, "results": tmp_path / "other"})
    assert "other config.json" in capsys.readouterr().out
    earlier = {fact: value for fact, value in record.model.items() if fact != "config_sha256"}
    write_record(tmp_path / "runs", dataclasses.replace(record, model=earlier))
    run(str(model), seeds=(0, 1), **{k: v for k, v in arguments.items() if k != "seeds"})
    assert "1 of 2 already finished" in capsys.readouterr().out
    assert len(load_groups(tmp_path / "runs")) == 1


def test_explain_lists_settings_and_writes_nothing(tiny_model, data, tmp_path, capsys):
    run(
        str(tiny_model),
        task="lcqmc",
        data=data,
        results=tmp_path / "runs",
        explain=True,
        lr=0.5,
        max_length=99,
    )
    printed = capsys.readouterr().out
    for part in ("learning_rate", "command line", "layer_decay", "task", "machine", "train 8", " 99 "):
        assert part in printed
    assert "betas (0.9, 0.999) and epsilon 1e-06" in printed
    assert not (tmp_path / "runs").exists()


def test_mistakes_are_found_before_anything_runs(tiny_model, data, tmp_path):
    with pytest.raises(UserError, match="unknown task 'nope'"):
        run(str(tiny_model), task="nope", data=data)
    with pytest.raises(UserError, match=r"needs train\.json, dev\.json, test\.json"):
        run(str(tiny_model), task="cmrc2018,drcd", data=data)
    (tmp_path / "model").mkdir()
    (tmp_path / "model/config.json").write_text('{"model_type": "electra"}')
    with pytest.raises(UserError, match="no weights"):
        run(str(tmp_path / "model"), task="lcqmc", data=data)
    with pytest.raises(UserError, match="takes 512 tokens, not 513 as LCQMC has them; give --max-length 512"):
        run(str(tiny_model), task="lcqmc", data=data, max_length=513)
    with pytest.raises(UserError, match="--name"):
        run(str(tiny_model), task="lcqmc", data=data, name="a/b")


@contextlib.contextmanager
def held_elsewhere(folder, seed):
    """Another process that holds a seed of a folder of records."""
    code = (
        "import sys; from pathlib import Path; from benchmarks.seeds import hold_seeds\n"
        "with hold_seeds(Path(sys.argv[1]), [int(sys.argv[2])]): print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(folder), str(seed)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as other:
        assert other.stdout.readline() == b"held\n"
        yield
        other.communicate()


def test_processes_of_a_job_array_run_disjoint_seeds(tmp_path):
    """One holds seed 1: another may hold 0 and 2, and not 1; afterwards anyone may."""
    with held_elsewhere(tmp_path, 1):
        with hold_seeds(tmp_path, [0, 2]):
            pass
        with pytest.raises(UserError, match="seed 1 in"), hold_seeds(tmp_path, [0, 1]):
            pass
    with hold_seeds(tmp_path, [1]):
        pass
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_all_goes_on_without_a_task_whose_files_are_missing(tiny_model, data, tmp_path, capsys):
    """What can run runs, and at the end one sentence names what was left out."""
    places = {
        "data": tmp_path / "data",
        "results": tmp_path / "runs",
        "predictions": tmp_path / "predictions",
    }
    shutil.copytree(data / "lcqmc", tmp_path / "data/lcqmc")
    arguments = {"task": "all", "seeds": (0,), "epochs": 1, "name": "toy", **places}
    with pytest.raises(UserError, match=r"DRCD needs train\.json.*; XNLI needs.*; BQ Corpus needs"):
        run(str(tiny_model), **arguments)
    assert "LCQMC" in capsys.readouterr().out
    assert [record.task for _, record in find_records(tmp_path / "runs")] == ["lcqmc"]
    with pytest.raises(UserError, match="CMRC 2018 needs"):
        run(str(tiny_model), **{**arguments, "data": tmp_path / "nothing"})


def test_the_model_of_the_best_seed_is_kept(tiny_model, data, tmp_path, capsys):
    """Also where its record is older than the wish: it is trained again, and its record stays as it was."""
    places = {"data": data, "results": tmp_path / "runs", "predictions": tmp_path / "predictions"}
    arguments = {"task": "lcqmc", "seeds": (0, 1, 2), "epochs": 2, "name": "toy", "lr": 3e-3, **places}
    run(str(tiny_model), **arguments)
    found = list(find_records(tmp_path / "runs"))
    best = max((record for _, record in found), key=lambda r: (r.scores["dev"]["accuracy"], -r.seed))
    before = {path: path.read_bytes() for path, _ in found}
    run(str(tiny_model), save_model=tmp_path / "models", **arguments)
    assert {path: path.read_bytes() for path, _ in found} == before
    (folder,) = (tmp_path / "models/lcqmc" / best.bench_id).iterdir()
    assert folder.name == f"seed-0{best.seed}"
    printed = " ".join(capsys.readouterr().out.split())
    assert f"seed {best.seed} is best on dev and is trained again" in printed
    assert "does not repeat" not in printed
    named = json.loads((folder / "config.json").read_text("utf-8"))
    assert (named["id2label"], named["label2id"]) == ({"0": "0", "1": "1"}, {"0": 0, "1": 1})
    rows = predict_task(str(folder), get_task("lcqmc"), load(get_task("lcqmc"), data).splits["dev"], 4)
    accuracy = 100 * sum(row["prediction"] == i % 2 for i, row in enumerate(rows)) / len(rows)
    assert accuracy == best.scores["dev"]["accuracy"]


def test_runs_of_one_seed_each_keep_the_model_of_the_best_of_all(tiny_model, data, tmp_path):
    """As the tasks of a job array: the last must not keep its own, nor take one that waits for its record."""
    places = {"data": data, "results": tmp_path / "runs", "predictions": tmp_path / "predictions"}
    arguments = {"task": "lcqmc", "epochs": 2, "name": "toy", "lr": 3e-3, **places}
    run(str(tiny_model), seeds=(0, 1), **arguments)
    score = {record.seed: record.scores["dev"]["accuracy"] for _, record in find_records(tmp_path / "runs")}
    best = int(score[1] > score[0])
    arguments |= {"results": tmp_path / "one-by-one", "save_model": tmp_path / "models"}
    run(str(tiny_model), seeds=(best,), **arguments)
    (kept,) = (tmp_path / "models/lcqmc").glob("*/seed-*")
    kept.with_name("seed-77").mkdir()
    run(str(tiny_model), seeds=(1 - best,), **arguments)
    assert sorted(path.name for path in kept.parent.iterdir()) == [f"seed-0{best}", "seed-77"]


def test_a_limit_on_answers_has_a_ceiling(tiny_model, data, tmp_path, capsys, trial_of):
    """Answers of one character: 100 with any limit. It is printed, and in the record."""
    trial = trial_of("cmrc2018", tiny_model, data, tmp_path)
    places = {"data": data, "results": tmp_path / "runs", "predictions": tmp_path / "predictions"}
    run(str(tiny_model), task="cmrc2018", seeds=(0,), name="toy", explain=True, **places)
    assert "ceiling on dev with answers of 100 tokens: EM 100.00, F1 100.00" in capsys.readouterr().out
    run(str(tiny_model), task="cmrc2018", seeds=(0,), epochs=1, name="toy", **places)
    ((_, record),) = find_records(tmp_path / "runs")
    assert record.ceiling == {"dev": {"exact_match": 100.0, "f1": 100.0}}
    assert trial.ceiling == {}


def test_a_folder_another_run_holds_is_refused(tiny_model, data, tmp_path, trial_of):
    places = {"results": tmp_path / "runs", "predictions": tmp_path / "predictions"}
    trial = trial_of("lcqmc", tiny_model, data, tmp_path)
    folder = record_path(tmp_path / "runs", "toy", "lcqmc", trial.bench_id, 0).parent
    with held_elsewhere(folder, 0), pytest.raises(UserError, match=r"seed 0 in .* is held by another run"):
        run(
            str(tiny_model),
            task="lcqmc",
            data=data,
            name="toy",
            epochs=1,
            batch_size=4,
            dtype="fp32",
            seeds=(0,),
            **places,
        )


@pytest.mark.parametrize(("convert", "warned"), [("t2s", True), ("none", False)])
def test_a_simplified_corpus_is_warned_of_on_a_traditional_task(
    convert, warned, tiny_model, data, tmp_path, capsys
):
    """Found through the manifests from the model to its checkpoint to its corpus."""
    corpus, checkpoint = tmp_path / "corpora/web", tmp_path / "run/checkpoints/step-1"
    model = shutil.copytree(tiny_model, tmp_path / "run/discriminator")
    for folder in (corpus, checkpoint):
        folder.mkdir(parents=True)
    write_manifest(corpus, stage="corpus.build", config={"convert": convert})
    write_manifest(checkpoint, stage="pretrain.train", config={}, parent=corpus)
    write_manifest(model, stage="pretrain.export", config={}, parent=checkpoint, name="toy")
    assert converted_corpus(str(model), tmp_path / "corpora") == ("t2s" if warned else None)
    shutil.copy(corpus / "manifest.json", tmp_path / "run/manifest.json")  # what the program finds by itself
    shutil.copytree(ROOT / "benchmarks/sample/drcd", tmp_path / "data/drcd")
    run(str(model), task="drcd", data=tmp_path / "data", explain=True)
    printed = capsys.readouterr().out
    assert ("converted with t2s" in printed and "characters of DRCD" in printed) == warned
    assert converted_corpus("org/name") is None


def test_bad_usage_exits_with_two(capsys):
    with pytest.raises(SystemExit) as exit_of:
        tyro.cli(run, args=["x", "--task", "bq", "--seeds", "5-3"])
    assert exit_of.value.code == 2
    assert "choice of seeds" in capsys.readouterr().err
    with pytest.raises(SystemExit) as exit_of:
        tyro.cli(run, args=["x"])
    assert exit_of.value.code == 2
    assert "--task is missing" in capsys.readouterr().err
