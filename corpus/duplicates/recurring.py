"""Lines that recur across documents: boilerplate of a site or source, and paragraphs that were copied.

Boilerplate is a short line that many documents of one site or source hold: navigation, credits, signatures.
Ordinary language recurs, too, and stays: headings of a word or two, and whole sentences unless they are
so long that many authors would not write the same one; of those the first copy stays. Nor are the lines of a
document that was copied often: its copies count as one document here, and are duplicates later.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

import numpy as np

from corpus.config import CorpusConfig
from corpus.hashing import Letters, letters_of, mixed, segment_hashes, slices

RULES = ("recurring_line", "repeated_paragraph")
LEAST_LETTERS = 6  # a shorter line is a heading or an answer (总结, 第一章总则, 谢谢大家)
LEAST_SENTENCE = 20  # letters; a shorter line that ends as a sentence does is ordinary (本法自公布日施行。)
PARAGRAPH = 0  # the group of lines that count whatever document holds them
_SENTENCE_END = tuple("。！？!?…；;：:～~")
_CLOSING = " ”’」』）)】]\"'"
_SENTENCE = np.uint64(1 << 31)  # marks, beside a line's number, that it ends as a sentence does
_LINE = _SENTENCE - np.uint64(1)


def group_of(key: str, source: str) -> str:
    """Whose boilerplate a document may hold: its site, if its id is an address, else its source."""
    return (urlsplit(key).hostname or source) if key.startswith(("http://", "https://")) else source


def group_hash(name: str) -> int:
    """64 bits, never that of paragraphs."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little") or 1


def line_records(texts: Sequence[str], groups: Sequence[str], config: CorpusConfig) -> np.ndarray:
    """uint64 (4, n), ascending by hash: the lines of a block that may recur.

    Rows: hash of the line's letters; :func:`group_hash` of the document, or PARAGRAPH for a line of
    ``repeated_paragraphs`` letters or more; document << 32 | line, both numbered in the block, and _SENTENCE
    where the line is one; hash of the document's letters. A document of one line holds no boilerplate: if
    others are the same, they are duplicates.
    """
    found = []
    hashed = {name: group_hash(name) for name in dict.fromkeys(groups)}
    line = 0
    for part in slices(texts):
        split = [text.split("\n") for text in texts[part]]
        counts = np.array([len(lines) for lines in split], dtype=np.int64)
        lines = [each for lines in split for each in lines]
        letters = letters_of(lines)
        sizes = letters.sizes
        paragraph = (sizes >= config.repeated_paragraphs) & (config.repeated_paragraphs > 0)
        short = ~paragraph & (sizes >= LEAST_LETTERS) & np.repeat(counts > 1, counts)
        short &= config.recurring_lines > 0
        sentence = np.zeros(len(lines), dtype=bool)
        for i in np.flatnonzero(short):
            sentence[i] = lines[i].rstrip(_CLOSING).endswith(_SENTENCE_END)
        short &= ~sentence | (sizes >= LEAST_SENTENCE)
        group = np.repeat(np.array([hashed[name] for name in groups[part]], dtype=np.uint64), counts)
        group[paragraph] = PARAGRAPH
        documents = np.repeat(np.arange(part.start, part.stop, dtype=np.uint64), counts)
        places = documents << np.uint64(32) | np.arange(line, line + len(lines), dtype=np.uint64)
        places |= sentence * _SENTENCE
        whole = segment_hashes(Letters(letters.codes, letters.ends[np.cumsum(counts) - 1]))
        rows = [segment_hashes(letters), group, places, np.repeat(whole, counts)]
        found.append(np.stack(rows)[:, paragraph | short])
        line += len(lines)
    records = np.concatenate(found, axis=1)
    return records[:, np.argsort(records[0], kind="stable")]


def group_sizes(documents: Mapping[str, int]) -> np.ndarray:
    """uint64 (2, n), ascending: :func:`group_hash` of each site or source, and its documents."""
    hashes = np.array([group_hash(name) for name in documents], dtype=np.uint64)
    sizes = np.array(list(documents.values()), dtype=np.uint64)
    return np.stack([hashes, sizes])[:, np.argsort(hashes)]


def lines_to_drop(records: Sequence[np.ndarray], sizes: np.ndarray, config: CorpusConfig) -> np.ndarray:
    """uint32 (3, n), ascending: block, line and index into RULES of each line to drop.

    Args:
        records: for each block in input order :func:`line_records`, or the part with some hashes.
        sizes: :func:`group_sizes` of the whole input; may be mapped, for only what is needed is read.
    """
    hashes, groups, places, wholes = np.concatenate(records, axis=1)
    if not len(hashes):
        return np.empty((3, 0), dtype=np.uint32)
    block = np.repeat(np.arange(len(records), dtype=np.uint64), [part.shape[1] for part in records])
    keys = hashes ^ mixed(groups.copy())  # a line counts within its group
    order = np.argsort(keys, kind="stable")  # the same lines in input order
    wholes = wholes[np.lexsort((wholes, keys))]  # with the same keys, but there copies lie side by side
    keys, groups, places, block = keys[order], groups[order], places[order], block[order]
    document = block << np.uint64(32) | places >> np.uint64(32)
    starts_run = np.concatenate([[True], keys[1:] != keys[:-1]])
    starts = np.flatnonzero(starts_run)
    run = np.cumsum(starts_run) - 1
    starts_whole = starts_run | np.concatenate([[True], wholes[1:] != wholes[:-1]])
    documents = np.add.reduceat(starts_whole.astype(np.int64), starts)
    names, run_group = np.unique(groups[starts], return_inverse=True)
    known = np.minimum(np.searchsorted(sizes[0], names), sizes.shape[1] - 1)  # PARAGRAPH is not among them
    least = np.maximum(config.recurring_lines, config.recurring_share * sizes[1][known])[run_group]
    is_paragraph = groups == PARAGRAPH
    later = document != document[starts][run]
    once = is_paragraph | (places & _SENTENCE > 0)  # of these the first copy stays
    drop = (is_paragraph | (documents >= least)[run]) & (later | ~once)
    line = places & _LINE
    found = np.stack([block, line, is_paragraph.astype(np.uint64)])[:, drop].astype(np.uint32)
    return found[:, np.lexsort((found[1], found[0]))]
