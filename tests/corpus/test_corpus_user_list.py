"""Lists that a user may give: the bundled one, a file, none, and what is no list."""

from pathlib import Path

import pytest

from corpus.tokens import dictionary
from corpus.user_list import read_list, sha256_of
from provenance import UserError


def test_file_bundled_or_none(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_bytes(b"\xef\xbb\xbf\xe7\x94\xb2\n")  # a byte order mark, and 甲
    assert read_list("blocklist", str(path)) == "甲\n"
    assert read_list("blocklist", "bundled", bundled=path) == "甲\n"
    assert read_list("blocklist", "none", bundled=path) == ""
    # by sha256sum of the three bytes and the line end
    assert sha256_of("甲\n") == "7589c50dcc90a9be456502ec1ebf077ed6c882f7ebe475a0fd6cb3a07f6b066c"


@pytest.mark.parametrize("name", ["", "/dev/zero", "bundled", "folder", "absent.txt"])
def test_what_is_no_file(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A device would be read for ever."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(UserError, match=r"--dictionary .* is no file; give a UTF-8 file .* or none"):
        dictionary.content(name)


def test_what_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "gbk.txt"
    path.write_bytes("红苹果".encode("gbk"))
    with pytest.raises(UserError, match=r"gbk.txt cannot be read \(UnicodeDecodeError\)"):
        read_list("dictionary", str(path))
