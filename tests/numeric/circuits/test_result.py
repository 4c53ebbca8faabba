"""Arrays with named axes, and pictures of them."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from otimes.algebra.errors import OtimesError, ShapeError
from otimes.numeric.circuits.behaviour import head_patterns
from otimes.numeric.circuits.composition import composition_scores
from otimes.numeric.circuits.copying import copying_scores, ov_eigenvalues
from otimes.numeric.circuits.lens import logit_lens
from otimes.numeric.circuits.result import Named
from otimes.numeric.load import load_model
from otimes.numeric.plot import plot
from otimes.numeric.tokenizer import load_tokenizer


def some() -> Named:
    values = np.arange(12.0).reshape(2, 3, 2)
    values[0, 0, 0] = np.nan
    return Named("score", values, ("kind", "layer", "head"), {"kind": ["Q", "K"]}, baseline=3.0)


def test_parts_by_number_and_by_name() -> None:
    assert some().at(kind="K").values.tolist() == [[6, 7], [8, 9], [10, 11]]
    assert some().at(kind=1, head=0).axes == ("layer",)
    assert some().at(kind="Q").labels == {}
    assert np.array_equal(np.asarray(some()), some().values, equal_nan=True)
    assert str(some().at(kind="K", head=0)).startswith("score (kind K, head 0), random")
    assert (some().shape, some()[1, 2, 0], some()[1, 2].tolist()) == ((2, 3, 2), 10.0, [10.0, 11.0])


def test_the_largest_with_their_places_and_without_nothing() -> None:
    assert some().top(2) == [
        ({"kind": "K", "layer": 2, "head": 1}, 11.0),
        ({"kind": "K", "layer": 2, "head": 0}, 10.0),
    ]
    assert len(some().top(100)) == 11


def test_rows_and_columns_without_an_entry_are_left_out() -> None:
    values = np.full((30, 30), np.nan)
    values[25:, 28:] = 7
    shown = str(Named("pairs", values, ("writer", "reader"))).splitlines()
    assert shown[1].split() == ["reader", "28", "reader", "29"]
    assert [line.split() for line in shown[2:]] == [
        ["writer", f"{i}", "7", "7"] for i in range(25, 30)
    ]
    assert Named("none", values[:2], ("a", "b"))._repr_html_().count("<tr>") == 3


def test_of_a_vocabulary_the_largest_are_shown() -> None:
    values = np.zeros((2, 50))
    values[0, [33, 7]], values[1, 20] = (3, 2), 1
    text = str(Named("lens", values, ("position", "token")))
    head, first, second, cut = text.splitlines()[1:]
    assert head.split()[:6] == ["position", "\\", "token", "33", "7", "20"]
    assert first.split()[:5] == ["position", "0", "3", "2", "0"]
    assert second.split()[:5] == ["position", "1", "0", "0", "1"]
    assert cut == "the tokens with the largest entries, of 50"
    labelled = Named(
        "lens", values, ("position", "token"), {"token": [f" t{i}" for i in range(50)]}
    )
    assert "<th>position \\ token</th><th>·t33</th><th>·t7</th>" in labelled._repr_html_()
    ticks = plot(labelled).axes[0].get_xticklabels()
    assert [tick.get_text() for tick in ticks][:3] == ["·t33", "·t7", "·t20"]


def test_parts_of_a_whole() -> None:
    parts = Named("parts", np.array([1.5, 2.0]), ("component",), whole=4.0)
    assert parts.missing == 0.5
    assert repr(parts) == "<parts [component 2] float64, sum 3.5 of 4>"
    assert "<p>sum 3.5 of 4</p>" in parts._repr_html_()
    assert parts.at(component=0).whole is None
    assert some().missing is None


def test_results_cannot_be_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        some().values[0] = 1


def test_wrong_use() -> None:
    with pytest.raises(
        ShapeError, match=r"score: 2 axis names \('layer', 'head'\) for an array of shape \(3,\)"
    ):
        Named("score", np.ones(3), ("layer", "head"))
    with pytest.raises(ShapeError, match="'layer' has 3 entries and 2 labels"):
        Named("score", np.ones(3), ("layer",), {"layer": ["0", "1"]})
    with pytest.raises(OtimesError, match="no axis 'query'; it has kind, layer, head"):
        some().at(query=0)
    with pytest.raises(
        OtimesError, match="score: unknown kind 'V'; the axis has 2 entries, from 0, labelled 'Q'"
    ):
        some().at(kind="V")
    with pytest.raises(OtimesError, match="score: unknown layer 3; the axis has 3 entries, from 0"):
        some().at(layer=3)


class _Balanced(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize(
    "result",
    [
        some(),
        some().at(kind=0, layer=0, head=0),
        some().at(kind=0, layer=0),
        Named("wide", np.ones((40, 40)), ("a<b", "c")),
        Named("deep", np.ones((40, 1, 1)), ("a", "b", "c")),
        Named("labels", np.ones(2), ("token",), {"token": ["<b>", " \n"]}),
        Named("complex", np.array([1 + 2j, 3]), ("eigenvalue",)),
    ],
    ids=lambda result: result.kind + str(result.values.shape),
)
def test_as_html_it_stands_by_itself(result: Named) -> None:
    html = result._repr_html_()
    parser = _Balanced()
    parser.feed(html)
    assert not parser.open
    assert not re.search(r"<script|https?:|<b></b>|nan", html)
    if result.kind == "labels":
        assert "<th>&lt;b&gt;</th><th>·⏎</th>" in html


class TestPictures:
    @pytest.fixture(autouse=True)
    def _needs_matplotlib(self) -> None:
        pytest.importorskip("matplotlib")

    def test_eigenvalues_lie_in_the_plane(self) -> None:
        found = ov_eigenvalues(load_model("one_layer"))
        figure = plot(found)
        assert len(figure.axes) == 4
        for head, axis in enumerate(figure.axes):
            dots = axis.collections[0].get_offsets()
            assert np.allclose(dots[:, 0] + 1j * dots[:, 1], found.values[0, head], atol=0)
            score = copying_scores(load_model("one_layer")).values[0, head]
            assert axis.get_title() == f"layer 0, head {head}  Σλ/Σ|λ| = {score:.2f}"

    def test_composition_is_shown_against_chance(self) -> None:
        scores = composition_scores(load_model("induction"))
        figure = plot(scores)
        *panels, bar = figure.axes
        assert [axis.get_title() for axis in panels] == ["Q", "K", "V"]
        image = panels[1].images[0]
        shown = scores.at(kind="K").values / scores.baseline
        assert np.array_equal(np.ma.getdata(image.get_array()), shown, equal_nan=True)
        low, high = image.get_clim()
        assert low + high == pytest.approx(2)  # white is the random baseline
        assert bar.get_ylabel() == "composition / random baseline"

    def test_patterns_are_shown_with_their_tokens(self) -> None:
        model = load_model("two_layer")
        found = head_patterns(model, "def f(", 1)
        figure = plot(found)
        shown = [text.get_text() for text in figure.axes[0].get_xticklabels()]
        tokens = load_tokenizer().token_strings(load_tokenizer().encode("def f("))
        assert shown == [token.replace(" ", "·") for token in tokens]
        expected = model.forward(load_tokenizer().encode("def f("))["pattern.1"]
        assert np.array_equal(figure.axes[2].images[0].get_array(), expected[2])
        assert figure.axes[0].get_ylabel() == "query"

    def test_tokens_have_bars_in_their_order(self, tmp_path) -> None:
        values = np.array([0.5, -2.0, 1.0])
        scores = Named("score", values, ("position",), {"position": ["${$", " =", "$y"]}, about="$")
        figure = plot(scores)
        (axis,) = figure.axes
        assert [bar.get_width() for bar in axis.patches] == values.tolist()
        assert [bar.get_facecolor()[0] > 0.5 for bar in axis.patches] == [False, True, False]
        assert axis.get_ylim()[0] > axis.get_ylim()[1]  # the first token stands on top
        figure.savefig(tmp_path / "bars.svg")  # "${$" would be a formula, and a broken one
        drawn = re.findall("<!-- (.*?) -->", (tmp_path / "bars.svg").read_text("utf-8"))
        assert [text for text in drawn if "$" in text] == ["${$", "$y", "$"]

    def test_a_picture_can_be_saved(self, tmp_path) -> None:
        plot(copying_scores(load_model("two_layer"))).savefig(tmp_path / "scores.svg")
        assert (tmp_path / "scores.svg").read_text(encoding="utf-8").startswith("<?xml")

    def test_too_much_is_refused(self) -> None:
        many = Named("pattern", np.ones((50, 2, 2)), ("head", "query", "key"))
        with pytest.raises(OtimesError, match=r"50 panels, more than 36; .* result.at\(head=0\)"):
            plot(many)
        with pytest.raises(OtimesError, match="nothing to plot"):
            plot(many.at(head=0).__class__("none", np.ones((0, 2)), ("a", "b")))
        with pytest.raises(
            OtimesError, match="cannot plot ndarray: plot takes tables of scores, such as those of"
        ):
            plot(np.ones(3))  # type: ignore[arg-type]


def test_a_lens_is_a_named_array() -> None:
    assert logit_lens(load_model("zero_layer"), "x").axes == ("activation", "position", "token")
