"""The view: well formed, self-contained, and telling what the numbers tell."""

from __future__ import annotations

import re
import struct
import zlib
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest

from otimes.numeric.load import load_model
from otimes.numeric.paths.ensemble import paths
from otimes.numeric.paths.views import html_page, png
from otimes.numeric.tokenizer import load_tokenizer
from tests.numeric.paths.cases import case

VOID = {"meta", "br", "wbr", "img"}


class Reader(HTMLParser):
    """Sees that what is opened is closed, and gathers the text and the attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[SimpleNamespace] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.seen.append(SimpleNamespace(tag=tag, attributes=dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list) -> None:
        self.seen.append(SimpleNamespace(tag=tag, attributes=dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    return reader


@pytest.fixture(scope="module")
def induction():
    tokens = load_tokenizer().encode("<a> & b, <a>")
    return paths(load_model("induction"), tokens)


def test_a_page_is_well_formed_and_asks_nothing_of_anybody(induction) -> None:
    page = html_page(induction.summary())
    reader = read(page)
    assert {"script", "link", "iframe", "object"}.isdisjoint(each.tag for each in reader.seen)
    for each in reader.seen:
        for name, value in each.attributes.items():
            assert not name.startswith("on")
            if name in ("src", "href"):
                assert value.startswith("data:image/png;base64,")
    assert "url(" not in page
    assert "@import" not in page
    assert "prefers-color-scheme:dark" in page


def test_the_page_says_what_the_numbers_say(induction) -> None:
    summary = induction.summary(position=2, token=20, top=4)
    text = read(html_page(summary)).text
    assert f"The logit is {summary.logit:+.3f}" in text
    for value in (*summary.orders, *[path.value for path in summary.best]):
        assert f"{value:+.3f}" in text
    for value in (*summary.heads.flat, *summary.shapley.flat):
        assert f"{value:+.2f}" in text
    assert "Proven: these are the 4 largest of all paths. 25 were visited." in text
    assert "<a>" in text.replace("·", " ")  # escaped in the source, so it is text here


def test_a_bar_is_as_long_as_its_value(induction) -> None:
    summary = induction.summary(top=3)
    page = html_page(summary)
    found = re.findall(r'<rect class="(up|down)"[^>]* width="([\d.]+)"', page)
    values = [*summary.orders, *[path.value for path in summary.best]]
    assert len(found) == len(values)
    for bars, shown in ((values[:3], found[:3]), (values[3:], found[3:])):
        largest = max(abs(value) for value in bars)
        for value, (side, width) in zip(bars, shown, strict=True):
            assert side == ("up" if value >= 0 else "down")
            assert abs(float(width) - 170 * abs(value) / largest) <= 0.05


def test_a_notebook_gets_the_same_without_the_page_around_it(induction) -> None:
    piece = induction._repr_html_()
    assert piece.startswith('<div class="otimes-paths">')
    assert piece in html_page(induction.summary())


def test_models_without_layers_or_without_the_tokenizer() -> None:
    assert "Largest paths" not in read(paths(load_model("zero_layer"), [1, 2])._repr_html_()).text
    assert "#10" in read(paths(*case("gpt2"))._repr_html_()).text


def test_the_likeliest_token_is_the_model_s() -> None:
    model, tokens = case("deep gpt2")
    summary = paths(model, tokens).summary(position=3)
    logits = model.forward(tokens)["logits"][3]
    assert summary.token == logits.argmax()
    assert abs(summary.logit - logits.max()) < 1e-12


def test_a_picture_is_the_pattern() -> None:
    content = png(np.array([[0.0, 1.0], [0.25, 0.75]]))
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", content[16:24]) == (2, 2)
    (length,) = struct.unpack(">I", content[33:37])
    rows = zlib.decompress(content[41 : 41 + length])
    assert [rows[at] for at in (0, 4, 8, 9, 13, 17)] == [0, 0, 255, 0, 64, 191]
