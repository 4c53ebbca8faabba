"""The widgets of the lessons: what they compute in the page is what NumPy computes."""

import json
from html import unescape

import numpy as np
import pytest

pytest.importorskip("mkdocs", reason="the extra `docs` is not installed")
pytest.importorskip("py_mini_racer")

from py_mini_racer import MiniRacer

import lesson_prompt
import values_rotary
import widget_data
import widgets
from otimes.numeric.circuits.copying import copying_scores
from otimes.numeric.interventions.hooks import hook
from otimes.numeric.interventions.passes import intervene
from otimes.numeric.paths.ensemble import paths

PATTERN = np.array([[1, 0, 0], [0.25, 0.75, 0], [0.5, 0, 0.5]])


@pytest.fixture(scope="module")
def javascript():
    """Return a function that calls arithmetic.js, with what goes in and out as JSON."""
    v8 = MiniRacer()
    v8.eval(
        (widgets.FILES / "arithmetic.js").read_text("utf-8").replace("const otimes", "var otimes")
    )
    v8.eval("call = (name, given) => JSON.stringify(otimesArithmetic[name](...JSON.parse(given)))")

    def call(name, *given):
        return json.loads(v8.call("call", name, json.dumps(given)))

    yield call
    v8.close()


def test_a_cell_is_a_row_of_the_kronecker_product(javascript):
    data = widget_data.kronecker() | {"A": PATTERN.tolist()}
    a, w, x = (np.array(data[name], dtype=float) for name in "AWX")
    whole = np.kron(a, w)
    np.testing.assert_array_equal(javascript("kron", a.tolist(), w.tolist()), whole)
    found = javascript("cell", a.tolist(), w.tolist(), x.tolist(), 1, 0)
    np.testing.assert_array_equal(found["row"], whole[2])
    assert found["value"] == (a @ x @ w.T)[1, 0] != (a.T @ x @ w.T)[1, 0]


def test_a_moved_token_is_what_the_model_makes_of_the_moved_prompt(javascript):
    model, _ = lesson_prompt.run()
    tokens = list(lesson_prompt.prompt()[0])
    kinds, data = sorted(set(tokens), key=tokens.index), widget_data.move()
    tokens[7], tokens[8] = tokens[8], tokens[7]
    places = model.forward(tokens)
    order = [kinds.index(token) for token in tokens]
    for head in widget_data.MOVED:
        found = javascript("head", data["heads"][f"head 0.{head}"], order)
        np.testing.assert_allclose(found["pattern"], places["pattern.0"][head], atol=2e-3)
        np.testing.assert_allclose(found["mixed"], places["z.0"][head], atol=2e-3)
        logits = places["head_out.0"][head] @ model.W_U[:, kinds]
        np.testing.assert_allclose(found["logits"], logits, atol=2e-3)


def test_heads_that_are_off_are_on_no_path_and_the_model_goes_without_them(javascript):
    model, _ = lesson_prompt.run()
    tokens, at = lesson_prompt.prompt()[0], lesson_prompt.POSITION
    data = widget_data.paths()["predictions"][0]
    everything = [[True] * 4] * 2
    orders = paths(model, tokens).by_order(at, tokens[at + 1])
    np.testing.assert_allclose(javascript("orders", data, everything), orders, atol=2e-3)
    off = [[True, False, False, True], [True, True, False, True]]
    hooks = {hook("z.0", heads=(1, 2)): "zero", hook("z.1", heads=2): "zero"}
    logit = intervene(model, tokens, hooks)["logits"][at, tokens[at + 1]]
    assert javascript("recomputed", data, off) == pytest.approx(logit, abs=3e-3)
    direct, single, pairs = javascript("orders", data, off)
    kept = [np.array(row)[np.array(on)] for row, on in zip(data["single"], off, strict=True)]
    assert direct == data["direct"]
    assert single == pytest.approx(sum(row.sum() for row in kept))
    table = np.array(data["pairs"])
    assert pairs == pytest.approx(table[np.ix_([0, 3], [0, 1, 3])].sum())


def test_two_patterns_multiply_in_their_order(javascript):
    _, places = lesson_prompt.run()
    data = widget_data.compose()
    n = len(data["tokens"])
    first, second = (javascript("triangle", data["patterns"][layer][3], n) for layer in (0, 1))
    expected = places["pattern.1"][3] @ places["pattern.0"][3]
    np.testing.assert_allclose(javascript("matmul", second, first), expected, atol=2e-3)


def test_copying_scores_are_those_of_the_conjugate_pairs(javascript):
    model, _ = lesson_prompt.run()
    data = widget_data.eigenvalues()
    for kind in ("full", "bare"):
        expected = copying_scores(model, kind).values
        found = [javascript("copying", each[kind]) for each in data.values()]
        np.testing.assert_allclose(np.reshape(found, (2, 4)), expected, atol=1e-3)


def test_attention_that_finds_what_followed_the_same_token(javascript):
    tokens = ["a", "b", "a"]
    moved = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0]], dtype=float)
    found = javascript("induction", moved.tolist(), PATTERN.tolist(), tokens, 2)
    assert found == {"told": [1, 1, 0], "matched": 0.5}  # the key at 0 has moved its own token
    later = javascript("induction", moved.tolist(), PATTERN.tolist(), tokens, 1)
    assert later["matched"] == 0


def test_turned_vectors_score_as_the_model_does(javascript):
    model, *_ = values_rotary.head()
    data = widget_data.rotary()
    found = javascript("rotary", data, *data["at"])
    recorded = model.forward(lesson_prompt.prompt()[0])["scores.0"]
    score = recorded[values_rotary.HEAD][tuple(data["at"])]
    assert sum(each["score"] for each in found) == pytest.approx(score, abs=2e-3)
    shifted = javascript("rotary", data, *(each + 9 for each in data["at"]))
    assert sum(each["score"] for each in shifted) == pytest.approx(score, abs=2e-3)


def test_sums_are_rounded_as_numpy_rounds_and_stay_within_the_bound(javascript):
    data = widget_data.rounding()
    x, y = np.float32(data["x"]), np.float32(data["y"])
    total = np.float32(0)
    for product in x * y:
        total += product
    found = javascript("sum", data["x"], data["y"], len(x), "float32", 0)
    assert found["computed"] == float(total)
    assert 0 < found["error"] <= found["bound"]
    exact = float(np.dot(x.astype(np.float64), y.astype(np.float64)))
    assert found["exact"] == pytest.approx(exact, rel=1e-15)
    halves = javascript("sum", data["x"], data["y"], 20, "bfloat16", 0)
    total = np.float32(0)
    for product in _bfloat16(_bfloat16(x[:20]) * _bfloat16(y[:20])):
        total = _bfloat16(total + product)
    assert halves["computed"] == float(total)
    assert 0 < halves["error"] <= halves["bound"]
    for change, seen in ((1e-2, True), (1e-5, False)):
        mistaken = javascript("sum", data["x"], data["y"], len(x), "float32", change)
        assert (mistaken["error"] > mistaken["bound"]) == seen


def _bfloat16(values):
    """Round float32 to its upper 16 bits, ties to even."""
    bits = np.atleast_1d(np.float32(values)).view(np.uint32).astype(np.uint64)
    kept = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16
    return kept.astype(np.uint32).view(np.float32).reshape(np.shape(values))


@pytest.mark.parametrize("name", widgets.WIDGETS)
def test_a_widget_stands_in_the_page_with_its_data(name):
    made = widgets.replaced(f"<!-- widget: {name} -->", "learn/heads.md")
    attribute = made.split('data-data="')[1].split('"')[0]
    assert json.loads(unescape(attribute)) == json.loads(json.dumps(widgets.WIDGETS[name].data()))
    assert len(attribute) < 40_000
    assert made.count("<script src=") == 2
    assert all((widgets.FILES / file).is_file() for file in widgets.SCRIPTS)


def test_an_unknown_widget_stops_a_build():
    with pytest.raises(Exception, match="no widget is called 'nothing'"):
        widgets.replaced("<!-- widget: nothing -->", "learn/heads.md")
