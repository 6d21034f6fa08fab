"""Web pages: encodings are found and checked, paragraphs stay, and what surrounds them goes."""

import pytest

from corpus.inputs.sources import read_documents
from corpus.web.main_text import MAX_BYTES, charset_labels, html_to_text

HANS = "我们在城市里的河流边上走了很久，看见许多人在说话。天色渐渐暗了，他们才回家去。"
HANT = "我們在城市裡的河流邊上走了很久，看見許多人在說話。天色漸漸暗了，他們才回家去。"
LINES = [f"第{n}段。{HANS}" for n in "一二三四"]
PARAGRAPHS = "".join(f"<p>{line}</p>" for line in LINES)
LINKS = "".join(f"<li><a href='/{n}'>{n}频道</a></li>" for n in "新闻体育财经科技汽车")


def lines(body: str) -> list[str]:
    return html_to_text(f"<html><body>{body}</body></html>".encode())[1].split("\n")


# --- encodings ------------------------------------------------------------------------------------


def test_labels_of_header_and_page():
    page = b"<?xml version='1.0' encoding='gbk'?><meta charset=big5><meta content='text/html; charset=utf-8'>"
    assert charset_labels(page, 'text/html; charset="GB2312"') == ["GB2312", "gbk", "big5", "utf-8"]
    assert charset_labels(b"<p>" * 2000 + page, None) == []  # only the head is looked at


@pytest.mark.parametrize(
    ("encoding", "text", "header", "meta"),
    [
        ("gbk", HANS, "text/html; charset=GB2312", ""),
        ("gb18030", HANS + "𠮷", "text/html", "gb2312"),
        ("gbk", HANS, "text/html; charset=ISO-8859-1", "gbk"),
        ("gbk", HANS, None, "utf-8"),
        ("big5", HANT, "text/html; charset=big5", ""),
        ("big5hkscs", HANT + "嘅咗", None, "big5"),
        ("big5", HANT, "text/html; charset=gbk", ""),
        ("utf-8", HANS, "text/html; charset=gbk", "gbk"),
        ("utf-8-sig", HANS, None, "gbk"),
        ("utf-16", HANS, None, ""),
    ],
)
def test_encodings(encoding, text, header, meta):
    page = f'<head><meta http-equiv="Content-Type" content="text/html; charset={meta}"></head><p>{text}</p>'
    assert html_to_text(page.encode(encoding), content_type=header)[1] == text


# --- what stays and what goes ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "surroundings",
    [
        f"<div class=nav><ul>{LINKS}</ul></div>|<ul class=related>{LINKS}</ul><div>版权所有，翻印必究</div>",
        f"<nav>首页，频道。</nav>|<aside>{HANS}</aside><footer>{HANS}</footer><script>a = '脚本。';</script>",
        # comments: sentences, but each in a place of its own
        "|"
        + "<ul>"
        + "<li><div><b>网友</b></div><div><p>说得真好，支持。</p></div><div>举报</div></li>" * 30
        + "</ul>",
        # headlines with summaries, the headline in the same block or in one before it
        "|<div><ul>" + f"<li><a href=x>这是另一篇文章的标题吧</a> {HANS}</li>" * 20 + "</ul></div>",
        "|<div><ul>"
        + f"<li><h3><a href=x>这是另一篇文章的标题吧</a></h3><p>{HANS}</p></li>" * 9
        + "</ul></div>",
        # a statement and a call to subscribe in boxes of their own
        "<div><div>欢迎订阅，免费试读。</div></div>"
        "|<div class=statement><p>声明：本文由用户上传，不代表本站。</p></div>",
    ],
)
def test_surroundings_go(surroundings):
    before, after = surroundings.split("|")
    assert lines(f"{before}<div class=article><h1>标题</h1>{PARAGRAPHS}</div>{after}")[-4:] == LINES


@pytest.mark.parametrize(
    "article",
    [
        "<br><br>".join(LINES),
        "".join(f"<div>{line}</div>" for line in LINES),
        "".join(
            f"<section><section><span>{line[:4]}</span><span>{line[4:]}</span></section></section>"
            for line in LINES
        ),
        "<pre>" + "\n".join(LINES) + "</pre>",
        "<table><tr><td>" + PARAGRAPHS + "</td></tr></table>",
        "".join(f"<p>{line}" for line in LINES),  # no end tags
        f"<div style='visibility: hidden'>{PARAGRAPHS}</div>",  # shown by a script once loaded
        PARAGRAPHS.replace("。我们", "。<a href=x>我们</a>"),
        f"</html>{PARAGRAPHS}</html>",  # the page ends twice
        f"<a href=x>从这里开始的链接没有结束{'，' * 300}{PARAGRAPHS}",
    ],
    ids=["br", "div", "nested", "pre", "table", "unclosed", "hidden", "linked", "two-ends", "open-link"],
)
def test_paragraphs_of_any_markup_stay(article):
    assert lines(f"<ul>{LINKS}</ul><div>{article}</div><ul>{LINKS}</ul>")[-4:] == LINES


def test_between_paragraphs():
    """Headings and signatures stay; share bars, links with what announces them, and cells of data go."""
    body = (
        f"<div><p>{LINES[0]}</p><h2>小标题</h2><p>{LINES[1]}</p>"
        "<p>相关新闻：</p><p><a href=x>另一条新闻的标题</a></p>"
        "<div><a href=x>分享</a> <a href=y>收藏</a></div><table><tr><td>年份</td><td>2019</td></tr></table>"
        f"<p>{LINES[2]}</p><p>青石桥中学教务处</p><p>二〇二三年十一月六日</p></div>"
    )
    assert lines(body) == [LINES[0], "小标题", *LINES[1:3], "青石桥中学教务处", "二〇二三年十一月六日"]


@pytest.mark.parametrize(
    "insert",
    [
        "<table>" + "<tr><td>年份</td><td>数量</td></tr>" * 30 + "</table>",
        "<pre><code>" + "let x = 1;\n// 注释很长，也有标点。\nlet y = f(x)\n" * 30 + "</code></pre>",
        "<ul>" + "<li><a href=x>与本文无关的另一篇文章</a></li>" * 4 + "</ul>",
    ],
    ids=["data", "code", "links"],
)
def test_inserts_do_not_cut_an_article(insert):
    article = f"<div>{PARAGRAPHS}{insert}<p>结尾很短，但是要留下。</p></div>"
    assert [line for line in lines(article) if line in LINES or "结尾" in line] == [
        *LINES,
        "结尾很短，但是要留下。",
    ]
    assert not {"年份", "与本文无关的另一篇文章"} & set(lines(article))


def test_a_poem_in_pre_is_text():
    poem = ["床前明月光，疑是地上霜。", "举头望明月，低头思故乡。"]
    assert lines("<pre>" + "\n".join(poem) + "</pre>") == poem


def test_one_of_several_of_a_kind_is_not_the_whole():
    """A long post does not drive out the short ones of its thread, nor a long paragraph the others."""
    posts = "".join(f"<div class=post><div>{n}楼</div><div><p>{HANS * n}</p></div></div>" for n in (2, 12, 2))
    assert [line for line in lines(posts) if "。" in line] == [HANS * 2, HANS * 12, HANS * 2]


def test_white_space():
    """A line break in the source between two Chinese characters is no space, as browsers show it."""
    text = "　　河水很清，\n    我们在岸边 read 了\nan hour&nbsp;。<br>\n第二行。"
    assert lines(f"<p>{text}</p>") == ["河水很清，我们在岸边 read 了 an hour 。", "第二行。"]


def test_ruby_is_read_without_its_annotation():
    assert lines("<p><ruby>漢<rp>(</rp><rt>hàn</rt><rp>)</rp></ruby>字很多。</p>") == ["漢字很多。"]


@pytest.mark.parametrize(
    ("page", "title"),
    [
        ("<title>河边\n 散步_某网</title><h1>河边散步</h1><p>天色渐渐暗了。</p>", "河边散步"),
        ("<title>河边散步_某网</title><p>天色渐渐暗了。</p>", "河边散步_某网"),
        ("<title>河边散步_某网</title><h1>某网</h1><div>河</div><p>天色渐渐暗了。</p>", "河边散步_某网"),
        ("<title>河边散步记 某网</title><div>河边散步</div><p>天色渐渐暗了。</p>", "河边散步记 某网"),
        ("<p>天色渐渐暗了。</p>", ""),
    ],
)
def test_title(page, title):
    assert html_to_text(page.encode()) == (title, "天色渐渐暗了。")


@pytest.mark.parametrize("body", [f"<ul>{LINKS}</ul>", "", "<p>", "<script>var a = '脚本。';</script>"])
def test_no_main_text(body):
    assert lines(body) == [""]


# --- hostile pages --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "junk",
    [
        "<div>" * 100_000,
        "<div>" * 100_000 + "</div>" * 100_000,
        "<font>" * 100_000,
        "</p></div>" * 50_000,
        "<p title='" + "字" * 2_000_000 + "'></p>",
        "<p " + " ".join(f"a{n}" for n in range(50_000)) + "></p>",  # quadratic where a tree is built
        "<p>" + "<b> </b>" * 50_000 + "<a href=x>字</a>" * 50_000 + "</p>",
        "<" * 500_000,
        '<!DOCTYPE html [<!ENTITY a "哈哈"><!ENTITY b "&a;&a;&a;">]>&b;',
        "\0\ufffe\x01",
    ],
    ids=[
        "deep",
        "deep-closed",
        "fonts",
        "ends",
        "attribute",
        "attributes",
        "links",
        "angles",
        "entities",
        "control",
    ],
)
def test_hostile_pages_are_read(junk):
    assert lines(junk + f"<div>{PARAGRAPHS}</div>")[-4:] == LINES


def test_refused_pages(monkeypatch):
    monkeypatch.setattr("corpus.web.blocks.MAX_PIECES", 1000)
    with pytest.raises(ValueError, match="bytes, more than"):
        html_to_text(b"a" * (MAX_BYTES + 1))
    with pytest.raises(ValueError, match="pieces of text"):
        html_to_text("字<br>".encode() * 2000)
    with pytest.raises(ValueError, match="pieces of text"):
        html_to_text(b"<pre>" + "字\n".encode() * 2000)
    with pytest.raises(UnicodeError):
        html_to_text(b"<p>" + b"\xff\xff\x80" * 100)


# --- real pages -----------------------------------------------------------------------------------

# Lines and characters of each article's text. Each was compared with its page by reading: no paragraph is
# missing, and what is there beside the article are credits and statements in the article's own element.
ARTICLES = {
    "163.example/tests/3.html": (31, 2483),
    "163.example/tests/6.html": (17, 1289),
    "163.example/tests/9.html": (55, 1130),
    "baijiahao.example/tests/3.html": (18, 2087),
    "cjn.example/tests/1.html": (26, 1208),
    "ednchina.example/tests/1.html": (26, 1911),
    "guancha.example/tests/2.html": (9, 950),
    "gzggw.example/tests/1.html": (1, 248),
    "ifeng.example/tests/1.html": (74, 4030),
    "ifeng.example/tests/ifeng.html": (4, 659),
    "other.example/tests/1.html": (5, 284),
    "qq.example/tests/qq.html": (16, 1699),
    "sina.example/tests/1.html": (29, 1179),
    "sina.example/tests/4.html": (11, 943),
    "stcn.example/tests/1.html": (2, 257),
    "thepaper.example/tests/2.html": (70, 1495),
    "thepaper.example/tests/5.html": (15, 1841),
    "toutiao.example/tests/4.html": (15, 1545),
    "wechat.example/tests/1.html": (9, 1738),
    "xinhuanet.example/tests/1.html": (5, 558),
    "021news.example/visiable_test/1.html": (17, 757),
    "mydrivers.example/visiable_test/1.html": (7, 501),
}


@pytest.mark.real
def test_real_pages(real_data):
    """All 22 articles are whole; the two list pages bring next to nothing."""
    texts = {d.id: d.text for d in read_documents(real_data / "web" / "pages.warc.gz")}
    found = {name.partition("//")[2]: (text.count("\n") + 1, len(text)) for name, text in texts.items()}
    lists = {name for name in found if "test_list_page" in name}
    assert {name: size for name, size in found.items() if name not in lists} == ARTICLES
    assert sum(found[name][1] for name in lists) < 250
