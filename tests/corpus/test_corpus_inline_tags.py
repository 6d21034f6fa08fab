"""Inline tags that say something, in text of any source."""

import time

import pytest

from corpus.inline_tags import inline_tags

MATHML = (
    "<math><msup><mi>x</mi><mn>2</mn></msup><mo>=</mo><mfrac><mn>1</mn><mi>y</mi></mfrac></math>",
    '<math xmlns="a"><semantics><mrow><mi>x</mi></mrow><annotation encoding="application/x-tex">'
    "{\\displaystyle x_{1}}</annotation></semantics></math>",
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("3×10<sup>8</sup>米，2×10<sup>30</sup>千克", "3×10^8米，2×10^30千克"),
        ("2<sup>82,589,933</sup>−1，2<sup><i>k</i>+1</sup>", "2^82,589,933−1，2^(k+1)"),
        ("10<sup>&minus;8</sup>，2<sup>2<sup>n</sup></sup>，2<sup>n</sup>k", "10^−8，2^(2^n)，2^n k"),
        ("m<sup>2</sup>，90<SUP class=a>o</SUP>，19<sup>th</sup>，甲<sup>乙</sup>", "m²，90°，19th，甲乙"),
        ("甲。<sup>[1]</sup>乙<sup>[注 2]</sup>，<sup>3</sup>丙<sup>①</sup>", "甲。乙，丙"),
        ("f<sup>(n)</sup>，SO<sub>4</sub><sup>2−</sup>", "f^(n)，SO4^2−"),
        ("CO<sub>2</sub>，PM<sub>2.5</sub>，维生素B<sub>12</sub>", "CO2，PM2.5，维生素B12"),
        ("1010<sub>2</sub>，log<sub>10</sub>100，a<sub>n-1</sub>", "1010_2，log_10 100，a_(n-1)"),
        ("价格<del>200</del><strike class=a>150</strike>100元", "价格100元"),
        ("设<math>x^2 &lt; r</math>，则", "设x² < r，则"),
        (f"设{MATHML[0]}，则{MATHML[1]}。", "设x²=1/y，则x1。"),
        ("<q>好</q>，甲<sup>乙\n丙</sup>", "“好”，甲乙\n丙"),
        ("甲<sup>乙<sub>丙</sup>丁", "甲乙<sub>丙丁"),  # nothing closes one of them
        ("用<sup>标签，写完用</sup>标签", "用<sup>标签，写完用</sup>标签"),
        ("标签<del>和<ins>不同，</del>丙", "标签<del>和<ins>不同，</del>丙"),
    ],
)
def test_meaning(text, shown):
    assert inline_tags(text) == shown


@pytest.mark.parametrize(
    "repeated",
    ["<sup>", "</sup>", "<sup>8</sup>", "<sup ", "<math><mrow>", "<math><mi>x", "<q>a<del>", "<sub>1</sub>"],
)
def test_linear(repeated):
    text = repeated * (320_000 // len(repeated))
    for end in ("", "</math></del></sup>"):
        start = time.process_time()
        inline_tags(text + end)
        assert time.process_time() - start < 3  # a quadratic pass takes minutes
