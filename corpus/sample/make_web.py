"""Pack the pages of corpus/sample/web into corpus/sample/web-sample.warc.gz, the same bytes on every run."""

import io
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

HERE = Path(__file__).resolve().parent
DATE = "2024-05-01T00:00:00Z"

# page: address, encoding of the stored bytes, where the encoding is declared ("http", "meta" or "both")
PAGES = {
    "news": ("http://www.liujiang.example.com/n/20871.html", "utf-8", "both"),
    "blog": ("https://slow.example.org/2023/10/hundred-days", "utf-8", "meta"),
    "recipe": ("http://zaotai.example.net/r/296", "gbk", "meta"),
    "forum": ("http://bbs.garden.example.com/t-9921-1.html", "gbk", "http"),
    "product": ("https://shop.yuanye.example.com/p/88", "utf-8", "http"),
    "school": ("http://school.example.org/tzgg/813.htm", "gb18030", "meta"),
    "travel": ("http://travel.example.net/p/81", "big5", "http"),
    "tech": ("https://notes.example.org/c/4", "utf-8", "both"),
    "list": ("http://www.liujiang.example.com/local/list_3.html", "utf-8", "both"),
    "review": ("http://books.example.net/novel/52", "big5", "meta"),
    "health": ("https://health.example.com/a/6630", "utf-8", "both"),
    "weather": ("https://sky.example.org/report/20231215", "utf-8", "both"),
}


def page_bytes(name: str, encoding: str, declared: str) -> bytes:
    """The source page in its stored encoding; its meta charset renamed, or dropped where HTTP alone tells."""
    lines = (HERE / "web" / f"{name}.html").read_text(encoding="utf-8").splitlines(keepends=True)
    if declared == "http":
        lines = [line for line in lines if not line.startswith("<meta charset")]
    return "".join(lines).replace("charset=utf-8", f"charset={encoding}").encode(encoding)


def main() -> None:
    with open(HERE / "web-sample.warc.gz", "wb") as file:
        writer = WARCWriter(file, gzip=True, warc_version="1.0")

        def write(kind: str, url: str, body: bytes, **more: object) -> None:
            headers = {"WARC-Record-ID": f"<urn:uuid:{uuid5(NAMESPACE_URL, kind + url)}>", "WARC-Date": DATE}
            stream = io.BytesIO(body)
            writer.write_record(
                writer.create_warc_record(url, kind, payload=stream, warc_headers_dict=headers, **more)
            )

        write("warcinfo", "", b"software: corpus/sample/make_web.py\r\nformat: WARC File Format 1.0\r\n")
        bodies = {url: (page_bytes(name, enc, how), enc, how) for name, (url, enc, how) in PAGES.items()}
        robots = {"http://www.liujiang.example.com/robots.txt": (b"User-agent: *\nAllow: /\n", "", "")}
        for url, (body, encoding, declared) in (bodies | robots).items():
            kind = "text/plain" if url.endswith(".txt") else "text/html"
            charset = "" if declared in ("meta", "") else f"; charset={encoding}"
            fields = [("Content-Type", kind + charset), ("Content-Length", str(len(body)))]
            write("response", url, body, http_headers=StatusAndHeaders("200 OK", fields, protocol="HTTP/1.1"))


if __name__ == "__main__":
    main()
