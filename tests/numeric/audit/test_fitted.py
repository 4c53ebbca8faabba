"""What is read off the numbers where no mistake of the table fits."""

import math
import re

import numpy as np
import pytest
import torch

import otimes as ot
from otimes import random_model
from otimes.numeric.audit.diagnosis.fit_constants import unknowns
from otimes.numeric.audit.reference.evaluator import Evaluator
from tests.numeric.audit.test_plain import LOGITS, LONG, report_on

NUMBERS = {
    "ε by a hundredth": ("gln", {"eps": lambda n, which, lay: 1.01e-5}, "ε = 1.01e-05 and not"),
    "ε of one norm": (
        "gn",
        {"eps": lambda n, which, lay: 3e-5 if which == "ln2" else 1e-5},
        r"ε = 3e-05 and not 1e-05 \(in ln2 only\)",
    ),
    "ε of one layer": (
        "l",
        {"eps": lambda n, which, lay: 2e-5 if lay == 1 else 1e-5},
        r"ε = 2e-05 and not 1e-05 \(in layer 1\)",
    ),
    "base": ("l", {"base": lambda n: 10001.0}, "base 10001 and not 10000"),
    "scores": (
        "g",
        {"scores": lambda n, q, k, lay: 1.003 * q @ k.mT / math.sqrt(12)},
        "the scores multiplied by 1.003",
    ),
    "cube of GELU": (
        "g",
        {"act": lambda n, x: 0.5 * x * (1 + torch.tanh((2 / math.pi) ** 0.5 * (x + 0.045 * x**3)))},
        "tanh GELU with 0.045 for 0.044715",
    ),
}


def cases():
    return [
        (name, row[0][number % len(row[0])])
        for number, (name, row) in enumerate(NUMBERS.items())
        if LONG or number % 4 == 0
    ]


@pytest.mark.parametrize(("name", "family"), cases())
def test_one_other_number_is_found_from_logits_alone(name, family):
    """Some of these move logits by 1e-6: as much as norms in single precision would."""
    _, steps, words = NUMBERS[name]
    report = report_on(family, LOGITS, **steps)
    assert re.search(words, report.first_failure.diagnosis), str(report)


def test_a_norm_in_place_that_overwrites_the_stream_is_named():
    def in_place(net, x, which, lay, g, b):
        return x.mul_(torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + net.eps(which, lay))) * g

    report = report_on("l", LOGITS, normed=in_place)
    assert "norms in place overwrite the stream" in report.first_failure.diagnosis


def test_the_slope_of_swish_is_read_off_its_neurons():
    report = report_on("l", "float32", act=lambda net, x: x * torch.sigmoid(1.3 * x))
    assert report.first_failure.place == "mlp_post.0"
    assert "β = 1.3 and not 1" in report.first_failure.diagnosis


@pytest.mark.parametrize("family", ["g", "l"])
def test_a_step_in_single_precision_is_no_other_number(family):
    def normed(net, x, which, lay, g, b):
        c = x.float()
        if net.c["norm"] == "layer":
            c = c - c.mean(-1, keepdim=True)
        scaled = (c * torch.rsqrt(c.pow(2).mean(-1, keepdim=True) + 1e-5)).double() * g
        return scaled if b is None else scaled + b

    report = report_on(family, LOGITS, normed=normed)
    assert report.passed, str(report)
    assert any(note.startswith("precision: ") for note in report.notes)


@pytest.mark.parametrize(
    ("root", "mode"),
    [
        (0.7978845608, "float64"),
        (0.79788456, "float64"),
        (float(np.float32((2 / np.pi) ** 0.5)), LOGITS),
    ],
)
def test_a_root_written_for_single_precision_is_named_as_precision(root, mode):
    def act(net, x):
        return 0.5 * x * (1 + torch.tanh(root * (x + 0.044715 * x**3)))

    report = report_on("g", mode, act=act)
    assert report.passed, str(report)
    assert any("√(2/π), which is right to single precision" in note for note in report.notes)


@pytest.mark.parametrize("family", ["g", "l", "n"])
def test_weights_rounded_to_float32_are_found_from_logits_alone(family):
    """Norms in float32 would allow as much, and are no fault."""

    def rounded(w, c):
        return {name: each.astype(np.float32).astype(np.float64) for name, each in w.items()}, c

    first = report_on(family, LOGITS, rounded).first_failure
    assert first.kind == "precision"
    assert "weights that were rounded to float32" in first.diagnosis


def test_a_root_of_six_digits_is_a_mistake():
    def act(net, x):
        return 0.5 * x * (1 + torch.tanh(0.797885 * (x + 0.044715 * x**3)))

    assert "0.797885" in report_on("g", "float64", act=act).first_failure.diagnosis


def weighted(function):
    """Return the step of weighting keys that are seen by a function of their scores."""
    return lambda net, s, lay: torch.where(s.isinf(), 0.0, function(s))


def filled(fill):
    """Return the step of masking with a finite number."""
    return lambda net, s, lay: s.masked_fill(torch.ones_like(s[0], dtype=bool).triu(1), fill)


PATTERNS = {
    "ReLU": (
        {"softmax": lambda n, s, lay: s.relu() / (s.relu().sum(-1, keepdim=True) + 1e-6)},
        "no softmax: keys are weighted by ReLU, normalised to sum to one",
    ),
    "sigmoid": (
        {"softmax": lambda n, s, lay: s.sigmoid() / s.sigmoid().sum(-1, keepdim=True)},
        "weighted by sigmoid, normalised",
    ),
    "square": ({"softmax": weighted(lambda s: s.relu() ** 2)}, "by squared ReLU, which is not"),
    "count": (
        {"softmax": lambda n, s, lay: s.relu() / torch.arange(1, s.shape[-1] + 1)[:, None]},
        "by ReLU, divided by the number of keys",
    ),
    "filled": ({"mask": filled(1e-9)}, "masked scores are set to 1e-09"),
    "added": (
        {"mask": lambda n, s, lay: s + torch.ones_like(s[0]).triu(1) * -7.5},
        "-7.5 is added to masked scores",
    ),
    "layers": (
        {"order": lambda n: range(n.c["L"] - 1, -1, -1)},
        "layer 0 reads what layer 1 wrote",
    ),
}


@pytest.mark.parametrize("mode", ["float32", "float64"])
@pytest.mark.parametrize("name", PATTERNS)
def test_another_weighting_mask_or_order_of_layers_is_named(name, mode):
    if (name, mode) == ("filled", "float32"):
        return  # there it cannot be told from 0
    steps, words = PATTERNS[name]
    report = report_on("g", mode, **steps)
    assert words in report.first_failure.diagnosis, str(report)


@pytest.mark.parametrize("shown", ["ln_final.", "nothing"])
def test_an_unembedding_that_is_not_tied_is_named(shown):
    model = random_model(n_layers=1, d_model=6, d_vocab=13, kind="gpt2")
    other = np.random.default_rng(3).normal(size=(6, 13))
    tokens = np.random.default_rng(4).integers(0, 13, (2, 8))

    def run(rows):
        places = [model.forward(row) for row in rows]
        logits = np.stack([each["ln_final"] @ other for each in places])
        if shown == "nothing":
            return logits
        return logits, {"ln_final": np.stack([each["ln_final"] for each in places])}

    report = ot.audit(run, tokens, weights=model)
    assert report.first_failure.place == "logits"
    assert "another unembedding, which is not tied to W_E" in report.first_failure.diagnosis
    few = ot.audit(lambda rows: model.forward(rows)["ln_final"] @ other, tokens[0], weights=model)
    assert "unembedding" not in few.first_failure.diagnosis


def test_dropout_in_the_pattern_is_read_off_what_is_mixed():
    model = random_model(n_layers=1, n_heads=2, d_head=6, d_vocab=13)
    tokens = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3]
    kept = np.random.default_rng(1).random((2, 10, 10)) > 0.2

    def run(rows):
        places = model.forward(rows)
        z = (places["pattern.0"] * kept / 0.8) @ places["v.0"]
        return places["logits"], {"v.0": places["v.0"], "z.0": z}

    report = ot.audit(run, tokens, weights=model)
    assert report.first_failure.place == "z.0"
    assert "dropout that was left on in the pattern" in report.first_failure.diagnosis
    assert "the others divided by 0.8" in report.first_failure.diagnosis


def test_dropout_in_a_module_is_found_by_other_draws():
    """A module restores the random state, so that two runs alone would draw the same."""

    class Dropping(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.E = torch.nn.Parameter(torch.tensor(np.array(model.W_E)))

        def forward(self, tokens):
            logits = torch.tensor(model.forward(tokens.tolist())["logits"])
            return torch.nn.functional.dropout(logits, 0.1, training=True) + 0 * self.E.sum()

    model = random_model(n_layers=1, d_vocab=13)
    before = torch.get_rng_state()
    report = ot.audit(Dropping(), torch.tensor([3, 1, 4, 1, 5, 9]), weights=model)
    assert "dropout" in report.first_failure.diagnosis, str(report)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("stretch", [(8.0, 0.3, 1.0, 12.0), (8.0, 0.3, 1.0, 12.0, 1.2), (4.0,)])
def test_a_ramp_is_fitted_without_its_ends_crossing(stretch):
    model = random_model(kind="llama", rotary_stretch=stretch)
    plain = Evaluator(model, np.array([3, 1, 4]), {})
    for unknown in unknowns(model.config, {"q"}):
        for factor in (1e-3, 1e3):
            made = plain.with_mistake(unknown.mistake(factor)).near("q.0").value
            assert np.isfinite(made).all()
