"""Plain implementations that were written before the audit's table of mistakes was looked at.

By default each mistake and rewrite once, the families and modes taking turns; with OTIMES_LONG=1
all families in all three modes, with a table of figures.
"""

import os
import re

import numpy as np
import pytest
import torch

from otimes.numeric.audit.audit import audit
from otimes.numeric.random_weights import random_model
from tests.numeric.audit.plain import FAMILIES, Net, config, weights
from tests.numeric.audit.plain_post_norm import BUGS, FORGED, REWRITES

LONG = os.environ.get("OTIMES_LONG") == "1"
SHOWN = ("float32", "float64")
LOGITS = "float64, logits alone"
SEED, N_POS = 0, 20


def report_on(family, mode, rewritten=None, seed=SEED, n_pos=N_POS, scale=1.0, only=(), **steps):
    """Audit a plain net of the family, its weights rewritten or some of its steps others.

    `only`: the kinds of places that it shows, all of them if none are named.
    """
    dtype = mode.partition(",")[0]
    c = FAMILIES[family]
    held = {name: w.astype(dtype) for name, w in weights(c, seed, scale).items()}
    w = {name: each.astype(np.float64) for name, each in held.items()}
    own, own_c = (w, c) if rewritten is None else rewritten(w, c)
    net = Net(own, own_c, getattr(torch, dtype), **steps)

    def call(tokens):
        with torch.no_grad():
            places = net.forward(torch.as_tensor(tokens))
        logits = places["logits"]
        if only:
            places = {name: p for name, p in places.items() if name.partition(".")[0] in only}
        return logits if mode == LOGITS else (logits, places)

    tokens = np.random.default_rng(100 + seed).integers(0, c["V"], n_pos)
    return audit(call, tokens, weights=held, config=config(c))


def turns(table, modes):
    if LONG:
        return [(name, f, mode) for name, row in table.items() for f in row[0] for mode in modes]
    return [
        (name, row[0][number % len(row[0])], modes[number // 2 % len(modes)])
        for number, (name, row) in enumerate(table.items())
    ]


@pytest.mark.parametrize(("name", "family", "mode"), turns(BUGS, SHOWN))
def test_a_mistake_is_found_where_it_first_shows_and_named(name, family, mode):
    _, first, words, steps = BUGS[name]
    report = report_on(family, mode, **steps)
    assert not report.passed
    assert report.first_failure.place in first.split("|"), str(report)
    assert re.search(words, report.first_failure.diagnosis, re.IGNORECASE), str(report)


@pytest.mark.parametrize(("name", "family", "mode"), turns(REWRITES, (*SHOWN, LOGITS)))
def test_a_rewrite_is_not_accused(name, family, mode):
    _, rewritten, steps = REWRITES[name]
    report = report_on(family, mode, rewritten, **steps)
    assert report.passed, str(report)


@pytest.mark.parametrize("mode", SHOWN)
@pytest.mark.parametrize("name", FORGED)
def test_what_a_norm_on_the_stream_does_not_pass_is_no_rewrite(name, mode):
    report = report_on("p", mode, FORGED[name])
    assert report.first_failure.place == "resid_pre.0", str(report)


@pytest.mark.parametrize("mode", SHOWN)
def test_where_tokens_are_too_few_for_a_fit_the_implementation_is_asked_for_more(mode):
    """Fourteen tokens leave a rotation of 48 dimensions open: it was accused before."""
    _, rewritten, steps = REWRITES["rotated and neurons permuted"]
    report = report_on("l", mode, rewritten, seed=2, n_pos=14, scale=0.5, **steps)
    assert report.passed, str(report)
    assert any("7 prompts were looked at" in note for note in report.notes)


@pytest.mark.parametrize("kind", [list, np.array, torch.tensor, lambda row: torch.tensor([row])])
def test_more_tokens_are_of_the_kind_of_the_callers(kind):
    model, got = random_model(d_model=24, n_layers=1), []

    def call(tokens):
        got.append(tokens)
        rows = np.asarray(tokens)
        places = model.forward(rows[0] if rows.ndim == 2 else rows)
        return places["logits"], {"z.0": places["z.0"] + 1e-3}

    assert not audit(call, kind([1, 2, 3]), weights=model).passed
    assert len({np.asarray(tokens).tobytes() for tokens in got}) == 1 + (2 * 24 - 3) // 3
    assert {type(tokens) for tokens in got} == {type(got[0])}
    assert {np.shape(tokens) for tokens in got} == {np.shape(got[0])}


def test_an_implementation_that_has_no_other_tokens_is_judged_on_those_it_has():
    model = random_model(d_model=24, n_layers=1)
    places = model.forward([1, 2, 3])

    def recorded(tokens):
        if list(tokens) != [1, 2, 3]:
            raise KeyError("not recorded")
        return places["logits"], {wrong: places[wrong] + 1e-3}

    wrong = "attn_out.0"
    assert audit(recorded, [1, 2, 3], weights=model).first_failure.place == wrong
    wrong = "z.0"  # as another basis inside the heads would make it, on three tokens
    report = audit(recorded, [1, 2, 3], weights=model)
    assert report.notes[-1].startswith("3 tokens are few to fit coordinates to")


def test_what_was_recorded_before_is_not_taken_for_an_answer_to_other_tokens():
    model = random_model(d_model=24, n_layers=1)
    places = dict(model.forward([1, 2, 3]))
    shown = {"z.0": places["z.0"][::-1]}  # the heads in another order: a gauge
    report = audit(lambda tokens: (places["logits"], shown), [1, 2, 3], weights=model)
    assert report.passed, str(report)
    assert report.gauges


@pytest.mark.parametrize(
    "name",
    [
        "eps only in the final norm",
        "tied for untied",
        "post-norm block",
        "pre-norm block",
        "parts normed and not sums",
        "mlp residual before the norm",
    ],
)
def test_logits_alone_show_a_mistake_and_name_it(name):
    """The first is as small as norms in float32, which would be acquitted: it is named before."""
    families, _, words, steps = BUGS[name]
    report = report_on(families[0], LOGITS, **steps)
    assert re.search(words, report.first_failure.diagnosis, re.IGNORECASE), str(report)


@pytest.mark.parametrize("family", FAMILIES)
def test_mistakes_change_what_is_computed_and_rewrites_do_not(family):
    """The catalogue itself, by the logits of the plain nets in float64 and nothing of ours."""
    c = FAMILIES[family]
    w, tokens = weights(c, SEED), torch.arange(N_POS) * 7 % c["V"]
    right = Net(w, c, torch.float64).forward(tokens)["logits"].log_softmax(-1)

    def off(own, own_c, steps):
        logits = Net(own, own_c, torch.float64, **steps).forward(tokens)["logits"]
        return float((logits.log_softmax(-1) - right).abs().max())

    for name, (families, _, _, steps) in BUGS.items():
        if family in families:
            assert not off(w, c, steps) <= 1e-9, name
    for name, (families, rewritten, steps) in REWRITES.items():
        if family in families:
            own = (w, c) if rewritten is None else rewritten(w, c)
            assert off(*own, steps) < 1e-11, name
    for name, forged in FORGED.items():
        if family == "p":
            assert off(*forged(w, c), {}) > 1e-2, name


@pytest.mark.skipif(not LONG, reason="minutes: the figures of all three modes")
def test_figures(capsys):
    lines = []
    for mode in (*SHOWN, LOGITS):
        bugs = [(name, f) for name, row in BUGS.items() for f in row[0]]
        found = place = named = 0
        for name, family in bugs:
            _, first, words, steps = BUGS[name]
            failure = report_on(family, mode, **steps).first_failure
            found += failure is not None
            if failure is not None:
                place += failure.place in first.split("|")
                named += bool(re.search(words, failure.diagnosis, re.IGNORECASE))
        same = [(name, f) for name, row in REWRITES.items() for f in row[0]]
        accused = sum(
            not report_on(f, mode, REWRITES[name][1], **REWRITES[name][2]).passed
            for name, f in same
        )
        n = len(bugs)
        lines.append(
            f"{mode:22} bugs {found}/{n}, first place {place}/{n}, diagnosis {named}/{n}; "
            f"rewrites accused {accused}/{len(same)}"
        )
        assert (found, accused) == (n, 0)
        assert named >= (0.6 if mode == LOGITS else 0.9) * n
        assert mode == LOGITS or place >= 0.95 * n
    with capsys.disabled():
        print("\n" + "\n".join(lines))
