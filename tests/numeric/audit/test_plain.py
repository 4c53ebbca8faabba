"""Plain implementations that were written before the audit's table of mistakes was looked at.

By default each mistake and rewrite once, the families and modes taking turns; with OTIMES_LONG=1
all families in all three modes, with a table of figures.
"""

import os
import re

import numpy as np
import pytest
import torch

from numeric.audit.front import audit
from tests.numeric.audit.plain import FAMILIES, Net, config, weights
from tests.numeric.audit.plain_bugs_attention import BUGS
from tests.numeric.audit.plain_rewrites_weights import REWRITES

LONG = os.environ.get("OTIMES_LONG") == "1"
SHOWN = ("float32", "float64")
LOGITS = "float64, logits alone"
SEED, N_POS = 0, 20


def report_on(family, mode, rewritten=None, **steps):
    """Audit a plain net of the family, its weights rewritten or some of its steps others."""
    dtype = mode.partition(",")[0]
    c = FAMILIES[family]
    held = {name: w.astype(dtype) for name, w in weights(c, SEED).items()}
    w = {name: each.astype(np.float64) for name, each in held.items()}
    own, own_c = (w, c) if rewritten is None else rewritten(w, c)
    net = Net(own, own_c, getattr(torch, dtype), **steps)

    def call(tokens):
        with torch.no_grad():
            places = net.forward(torch.as_tensor(tokens))
        return places["logits"] if mode == LOGITS else (places["logits"], places)

    tokens = np.random.default_rng(SEED).integers(0, c["V"], N_POS)
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


@pytest.mark.parametrize("name", ["eps only in the final norm", "tied for untied"])
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
