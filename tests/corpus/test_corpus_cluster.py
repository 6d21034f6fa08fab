"""Steps on Slurm (programs of its name that run jobs at once) and on a local Ray instance (an extra)."""

import json
import os
import sys
from pathlib import Path

import pytest

from corpus import cluster
from corpus.build import build
from corpus.command import parse
from provenance import MANIFEST, UserError

SBATCH = """#!{python}
import os, re, subprocess, sys
script = open(sys.argv[-1]).read()
last = int(re.search(r"--array=0-(\\d+)", script)[1])
for task in range(last + 1):
    environment = dict(os.environ, SLURM_ARRAY_TASK_ID=str(task), SLURM_NODELIST="here")
    subprocess.run(["bash", sys.argv[-1]], env=environment, capture_output=True)
open(os.path.join(os.path.dirname(__file__), "scripts"), "a").write(script)
print("Submitted batch job 17")
"""


@pytest.fixture
def slurm(tmp_path, monkeypatch) -> Path:
    """A folder of programs called sbatch, srun, squeue and scontrol at the head of PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    programs = {
        "sbatch": SBATCH.format(python=sys.executable),
        "srun": '#!/bin/bash\nwhile [[ $1 == -* ]]; do [[ $1 == -n ]] && shift; shift; done\nexec "$@"\n',
        "squeue": "#!/bin/bash\n",
        "scontrol": "#!/bin/bash\necho here\n",
    }
    for name, text in programs.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr(cluster, "POLL", 0.1)
    monkeypatch.setattr(cluster, "GRACE", 1.0)
    return folder


def corpus_of(folder: Path, *options: str) -> dict[str, str]:
    """Build a corpus of forty documents; the sha256 of its documents and rows."""
    text = folder / "text.jsonl"
    lines = [
        {"id": str(i), "text": f"第{i}天，{chr(0x4E00 + 7 * i)}老师带我们去看山。" * 3} for i in range(40)
    ]
    text.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    out = folder / "-".join(["corpus", *options[1:2]])
    build(
        parse([str(text), "--out", str(out), "--length", "128", "--no-progress", "--workers", "2", *options])
    )
    files = json.loads((out / MANIFEST).read_text())["files"]
    return {name: facts["sha256"] for name, facts in files.items() if name.startswith(("documents", "rows"))}


def test_options_for_slurm():
    assert cluster.slurm_options(("partition=cpu", "time=4:00:00", "account=a=b")) == {
        "partition": "cpu",
        "time": "4:00:00",
        "account": "a=b",
    }
    for wrong in ((), ("partition=cpu",), ("partition=cpu", "time=1", "account")):
        with pytest.raises(UserError, match="partition=NAME"):
            cluster.slurm_options(wrong)


def test_without_slurm_it_says_where_to_start(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="login node"):
        cluster.run_on_slurm("read", print, 2, 2, tmp_path, ("partition=cpu", "time=1"))


@pytest.mark.slow
def test_a_build_on_slurm_gives_the_same_bytes(slurm, tmp_path, monkeypatch):
    options = ["--executor", "slurm", "--slurm", "partition=cpu", "time=1:00:00", "account=a"]
    there = corpus_of(tmp_path, *options)
    assert there == corpus_of(tmp_path)
    assert there
    assert "#SBATCH --account=a" in (slurm / "scripts").read_text()


@pytest.mark.slow
def test_a_mistake_found_on_slurm_is_told(slurm, tmp_path):
    text = tmp_path / "text.jsonl"
    line = json.dumps({"text": "今天下雨，明天天晴。" * 2000}, ensure_ascii=False)
    text.write_text((line + "\n") * 20 + "{\n", encoding="utf-8")
    options = ["--executor", "slurm", "--slurm", "partition=cpu", "time=1:00:00"]
    with pytest.raises(UserError, match="line 21 is not JSON"):
        build(parse([str(text), "--out", str(tmp_path / "out"), "--no-progress", *options]))
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_build_on_ray_gives_the_same_bytes(tmp_path, monkeypatch):
    ray = pytest.importorskip("ray")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    ray.init(num_cpus=2, log_to_driver=False, include_dashboard=False)
    try:
        there = corpus_of(tmp_path, "--executor", "ray")
    finally:
        ray.shutdown()
    assert there == corpus_of(tmp_path)
    assert there
