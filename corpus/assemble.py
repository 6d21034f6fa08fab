"""What the steps left becomes the corpus folder: rows, documents, report and, last, the manifest."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from corpus.duplicates import decontaminate
from corpus.job import Job, blocks
from corpus.report.counts import summarize
from corpus.report.examples import find_examples
from corpus.report.page import markdown, web_page
from corpus.report.sections import sections
from corpus.tokens import rows
from provenance import MANIFEST, UserError, write_manifest, write_text

STAGE = "corpus.build"


def assemble(
    job: Job, name: str, identity: Any, benchmark: decontaminate.Benchmark | None, facts: dict[str, Any]
) -> Path:
    """The finished corpus folder, still inside the work folder."""
    final = job.work / "final"
    shutil.rmtree(final, ignore_errors=True)
    final.mkdir()
    counted: dict[str, int] = {}
    for kind in ("documents", "rejected"):
        (final / kind).mkdir()
        for path in sorted((job.work / kind).glob("*.parquet")):
            rows.link_or_copy(path, final / kind / path.name)
            counted[f"{kind}/{path.name}"] = pq.read_metadata(path).num_rows
    rows.link_or_copy(job.work / "clusters.parquet", final / "clusters.parquet")
    counted["clusters.parquet"] = pq.read_metadata(final / "clusters.parquet").num_rows
    for length in job.config.lengths:
        for split in ("train", "heldout"):
            source, target = job.work / f"rows-{length}" / split, final / f"rows-{length}" / split
            parts = [source / f"{rank:05d}.arrow" for rank in range(len(blocks(job)))]
            if missing := [part.name for part in parts if not part.is_file()]:
                raise UserError(
                    f"step pack left no {missing[0]} in rows-{length}; run again with --overwrite"
                )
            files = rows.finish_split(target, split, parts)
            counted |= {f"rows-{length}/{split}/{file}": n for file, n in files.items()}
    shutil.copyfile(job.vocab, final / "vocab.txt")
    summary = summarize(job, benchmark)
    if not summary["documents"]:
        raise UserError(
            "no document passed the rules: lower --min-han or --min-han-share, raise --weights if they are "
            "below 1, or give other files"
        )
    content = sections(summary, job.config, find_examples(job), facts)
    write_text(final / "report.md", markdown(name, content))
    write_text(final / "report.html", web_page(name, content))
    counts = {key: value for key, value in summary.items() if key not in ("inputs", "changed")}
    write_manifest(
        final, stage=STAGE, config=job.config, identity=identity, rows=counted, counts=counts, **facts
    )
    return final


def publish(final: Path, out: Path) -> None:
    """Move the finished corpus into ``out``, its manifest last."""
    (out / MANIFEST).unlink(missing_ok=True)
    names = {path.name for path in final.iterdir()}
    old = [path for path in out.iterdir() if path.name in names or path.name.startswith("rows-")]
    for path in old:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name in sorted(names - {MANIFEST}):
        os.replace(final / name, out / name)
    os.replace(final / MANIFEST, out / MANIFEST)
