"""What the networks think of a sentence, for any text and any folder a user may give."""

import shutil
import sys
from pathlib import Path

import pytest
import torch
from rich.console import Console
from transformers import AutoTokenizer, ElectraForMaskedLM, ElectraForPreTraining

import pretrain.inspect
from corpus.vocab import save_tokenizer, tokenizer
from pretrain.config import Size
from pretrain.inspect import as_html, as_table, as_text, find_networks, inspect
from pretrain.model import Electra
from provenance import UserError, run_cli


@pytest.fixture(scope="module")
def run(tmp_path_factory, vocab_path) -> Path:
    """A discriminator and a generator of 16 positions, as a run exports them."""
    torch.manual_seed(0)
    shape = Size(layers=1, hidden=32, heads=2, embedding=32, max_positions=16, initializer_range=0.3)
    model, out = Electra(shape), tmp_path_factory.mktemp("run")
    for name in ("discriminator", "generator"):
        getattr(model, name).save_pretrained(out / name)
        save_tokenizer(tokenizer(vocab_path), vocab_path, out / name)
    return out


@pytest.fixture
def one(run, tmp_path) -> Path:
    """The discriminator alone, under a name of the user's."""
    shutil.copytree(run / "discriminator", tmp_path / "mine" / "best")
    return tmp_path / "mine" / "best"


@torch.no_grad()
def test_numbers_are_those_of_transformers(run):
    """Each token masked alone in the generator; the discriminator sees the sentence as it is."""
    words = AutoTokenizer.from_pretrained(run / "generator")
    ids = words("今天好", return_tensors="pt")["input_ids"]
    doubts = ElectraForPreTraining.from_pretrained(run / "discriminator")(ids).logits[0].sigmoid()
    tokens = inspect(run, "今天好")
    assert [t.replaced for t in tokens] == pytest.approx(doubts[1:-1].tolist(), abs=1e-6)
    generator = ElectraForMaskedLM.from_pretrained(run / "generator")
    for at, token in enumerate(tokens, 1):
        masked = ids.clone()
        masked[0, at] = words.mask_token_id
        best = generator(masked).logits[0, at].softmax(-1).max(-1)
        assert token.guess == words.convert_ids_to_tokens(best.indices.item())
        assert token.guess_probability == pytest.approx(best.values.item(), abs=1e-6)


SENTENCES = ["今天<好>", "臺灣大學 Hello\n  😀👨‍👩‍👧 [MASK]，", "[b]好[/b] &amp;", "ａｂｃé\t好\u3000"]


@pytest.mark.parametrize("sentence", SENTENCES)
def test_the_sentence_is_shown_as_it_was_written(sentence, run):
    """Case, spaces, emoji and markup stay, on the terminal and in HTML; tokens are the vocabulary's."""
    tokens = inspect(run, sentence)
    assert as_text(sentence, tokens).plain == sentence
    for token in tokens:
        assert token.written == sentence[token.start : token.start + len(token.written)] != ""
    page = as_html(sentence, tokens)
    import html
    import re

    shown = re.sub(r"<rt>.*?</rt>", "", page[page.index("<p>") + 3 : page.index("</p>")])
    assert html.unescape(re.sub(r"<[^>]*>", "", shown)) == sentence
    console = Console(width=80)
    with console.capture() as seen:
        console.print(as_table(tokens))
    assert all(token.text in seen.get() for token in tokens)


def test_unknown_characters_stand_beside_their_token(run):
    tokens = inspect(run, "好😀")
    assert [t.text for t in tokens] == ["好", "[UNK]"]
    assert str(list(as_table(tokens).columns[0].cells)[1]) == "[UNK] 😀"


def test_long_text_is_read_in_windows(run):
    """16 positions hold 14 tokens and two special ones; nothing is left out, windows stand alone."""
    sentence = "今天天气很好我们去公园散步吧" + "今天天气很好我们去公园散步吧" + "好"
    tokens = inspect(run, sentence)
    assert "".join(token.text for token in tokens) == sentence
    for first, again in zip(tokens[:14], tokens[14:28], strict=True):
        assert (first.replaced, first.guess) == (again.replaced, again.guess)


def test_which_networks_are_found(run, one, tmp_path):
    """A run, one of its folders, or a network of any name; columns that nobody fills are left out."""
    both = (run / "discriminator", run / "generator")
    assert find_networks(run) == find_networks(both[0]) == find_networks(both[1]) == both
    shutil.copytree(run / "generator", one.parent / "generator")  # of another model
    assert find_networks(one) == (one, None)
    tokens = inspect(one, "今天")
    assert all(t.guess is None and t.replaced is not None for t in tokens)
    assert [column.header for column in as_table(tokens).columns] == ["token", "replaced"]
    assert "<ruby>" not in as_html("今天", tokens)


def empty(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


def unexported(folder: Path) -> None:
    empty(folder)
    (folder / "checkpoints").mkdir()


def cut(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])


def no_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def no_tokenizer(folder: Path) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt"):
        (folder / name).unlink()


def no_json(folder: Path) -> None:
    (folder / "config.json").write_text("{")


def another_model(folder: Path) -> None:
    config = folder / "config.json"
    config.write_text(config.read_text().replace("ElectraForPreTraining", "BertModel"))


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (shutil.rmtree, "holds no config.json"),
        (empty, "holds no config.json"),
        (unexported, "is a run without an export; run python -m pretrain.export"),
        (cut, "cannot be loaded as ElectraForPreTraining"),
        (no_weights, "no file named model.safetensors"),
        (no_tokenizer, "has no tokenizer of its 21128 tokens"),
        (no_json, "config.json names no network"),
        (another_model, "holds BertModel; give an ELECTRA"),
    ],
)
def test_folders_that_do_not_serve(harm, said, one, capfd, monkeypatch):
    harm(one)
    monkeypatch.setattr(sys, "argv", ["inspect", str(one), "好"])
    with pytest.raises(SystemExit) as ended:
        run_cli(pretrain.inspect.main)
    error = capfd.readouterr().err
    assert ended.value.code == 1
    assert said in error
    assert error.startswith("error: ")
    assert error.count("\n") == 1


def test_the_program(run, tmp_path, capfd, monkeypatch):
    def call(*words: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["inspect", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            run_cli(pretrain.inspect.main)
        seen = capfd.readouterr()
        return int(ended.value.code or 0), seen.out + seen.err

    status, said = call(run, "今天[b]", "--html", tmp_path / "new" / "page.html")
    assert status == 0
    assert said.startswith("今天[b]\n")
    assert "<span" in (tmp_path / "new" / "page.html").read_text(encoding="utf-8")
    assert call(run, "今\ud83d天\udced")[1].startswith("今天\n")  # half a character, a byte that is none
    assert call(run, " ") == (1, "error: the text holds no token; give a sentence\n")
    assert call(run, "好", "--html", tmp_path) == (
        1,
        f"error: {tmp_path} is a folder; give a file with --html\n",
    )


def test_only_shown_text_counts(one):
    with pytest.raises(UserError, match="no token"):
        inspect(one, "\u200b \n")
