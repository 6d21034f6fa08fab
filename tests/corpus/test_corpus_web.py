"""Web pages: the encoding is found and checked, paragraphs stay, navigation goes."""

import pytest

from corpus.sources import read_documents
from corpus.web import MAX_BYTES, decode, html_to_text

HANS = "我们在城市里的河流边上走了很久，看见许多人在说话。天色渐渐暗了，他们才回家去。"
HANT = "我們在城市裡的河流邊上走了很久，看見許多人在說話。天色漸漸暗了，他們才回家去。"


def test_byte_order_mark_wins():
    assert decode(b"\xef\xbb\xbf" + HANS.encode(), "text/html; charset=gbk") == HANS
    assert decode(b"\xff\xfe" + HANS.encode("utf-16-le")) == HANS


@pytest.mark.parametrize(
    ("encoding", "text", "header", "meta"),
    [
        ("gbk", HANS, "text/html; charset=GB2312", ""),  # GBK characters under the GB 2312 label
        ("gb18030", HANS + "𠮷", "text/html", "gb2312"),
        ("gbk", HANS, "text/html; charset=ISO-8859-1", "gbk"),  # the server's default means nothing
        ("gbk", HANS, None, ""),
        ("gbk", HANS, "text/html; charset=utf-8", ""),  # a wrong label
        ("big5", HANT, "text/html; charset=big5", ""),
        ("big5hkscs", HANT + "嘅咗", None, "big5"),
        ("big5", HANT, None, ""),
        ("big5", HANT, "text/html; charset=gbk", ""),  # a wrong label under which the bytes decode
        ("utf-8", HANS, "text/html; charset=gbk", "gbk"),
        ("utf-8", HANS, 'text/html; charset="no-such"', "hex"),
    ],
)
def test_encodings(encoding, text, header, meta):
    page = f'<meta http-equiv="Content-Type" content="text/html; charset={meta}">{text}'
    assert decode(page.encode(encoding), header) == page


def test_few_broken_bytes_are_no_failure():
    broken = (HANS * 20).encode() + b"\xff" + HANS.encode()
    assert decode(broken).replace("\ufffd", "") == HANS * 21
    with pytest.raises(UnicodeError):
        decode(b"\xff\xff\x80" * 100)


NAVIGATION = "".join(f"<li><a href='/{n}'>{n}频道</a></li>" for n in "新闻体育财经科技汽车")
PAGE = f"""<!DOCTYPE html><html><head><title> 河边
 散步 </title></head><body><div class="nav"><ul>{NAVIGATION}</ul></div>
<div class="article"><h1>河边散步</h1>{"".join(f"<p>第{n}段。{HANS}</p>" for n in "一二三四")}</div>
<ul class="related">{NAVIGATION}</ul><div class="footer">版权所有</div><script>var a = "脚本。";</script>
</body></html>"""


def test_paragraphs_stay_navigation_goes():
    title, text = html_to_text(PAGE.encode("gbk"), content_type="text/html; charset=gbk")
    assert title == "河边 散步"
    assert text.split("\n")[-4:] == [f"第{n}段。{HANS}" for n in "一二三四"]
    assert all(word not in text for word in ("频道", "版权", "脚本"))


def test_text_in_no_paragraphs_and_hidden():
    """Pages that a script shows once loaded, with the text in spans (as the WeChat ones have it)."""
    spans = "".join(f"<section><span>第{n}段。</span><span>{HANS}</span></section>" for n in "一二三四")
    page = f"<html><body><ul>{NAVIGATION}</ul><div style='visibility: hidden;'>{spans}</div></body></html>"
    text = html_to_text(page.encode())[1]
    assert text.replace("\n", "") == "".join(f"第{n}段。{HANS}" for n in "一二三四")


def test_html_that_ends_twice():
    page = f"<html><body><p>短。</p></body></html><html><body>{'<p>' + HANS + '</p>'}</body></html>"
    assert HANS in html_to_text(page.encode())[1]


def test_refused_pages():
    with pytest.raises(ValueError, match="more than"):
        html_to_text(b"a" * (MAX_BYTES + 1))
    with pytest.raises(ValueError, match="not HTML"):
        html_to_text(b"")


@pytest.mark.real
def test_real_pages(real_data):
    """All 22 articles keep at least 150 Han characters in sentences; no page brings a run of menu entries."""
    documents = list(read_documents(real_data / "web" / "pages.warc.gz"))
    articles = [document for document in documents if "test_list_page" not in document.id]
    assert len(articles) == 22
    for document in articles:
        lines = document.text.split("\n")
        assert sum(len(line) for line in lines if "。" in line or "，" in line) >= 150, document.id
        assert all(mark not in document.text for mark in ("function(", "{margin", "首页 >", "加载更多"))
