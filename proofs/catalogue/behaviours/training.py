"""Chapter 11: what training does: circuits under fine-tuning, and grokking in modular addition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import cos, fsum, pi

import numpy as np
import sympy
from sympy import Identity, MatrixSymbol, OneMatrix, Trace, Transpose

from otimes.algebra.language.defined import Rotation
from otimes.algebra.language.linear import matadd, matmul
from otimes.algebra.language.nonlinear import Activation
from otimes.numeric.behaviours.modular_addition import (
    AdditionNetwork,
    AdditionRun,
    circuit_efficiency,
    fourier_addition,
    fourier_shares,
    load_addition,
    share_of_the_sum,
)
from otimes.numeric.behaviours.training import circuit_overlap, fine_tune, last_loss
from otimes.numeric.model import Model
from otimes.numeric.rounding import gamma
from otimes.numeric.tokenizer import sample_tokens
from otimes.proofs.catalogue.attention_head.patterns import entrywise
from otimes.proofs.catalogue.interventions.patching import minus
from otimes.proofs.catalogue.sources import PRIMER
from otimes.proofs.catalogue.symbols import d, n, p, size
from otimes.proofs.claims import (
    Bound,
    Load,
    Method,
    Observation,
    Observed,
    Square,
    Statement,
    Trial,
)
from otimes.proofs.theorem import theorem

EMERGENT = f"{PRIMER}, “Emergent Multi-component Behaviors”"
PRAKASH = "Prakash et al. 2024, “Fine-Tuning Enhances Existing Mechanisms”"
NANDA = "Nanda et al. 2023, “Progress measures for grokking via mechanistic interpretability”"
GROMOV = "Gromov 2023, “Grokking modular arithmetic”"
VARMA = "Varma et al. 2023, “Explaining grokking through circuit efficiency”"
CHUGHTAI = "Chughtai, Chan and Nanda 2023, “A Toy Model of Universality”"
UNIT = 2.0**-53

K = size("K")
first, second, third = (MatrixSymbol(name, K, 1) for name in ("alpha", "beta", "gamma"))


# -- modular addition ------------------------------------------------------------------------------


@theorem(
    title="Rotations compose by adding their angles",
    chapter=11,
    convention="row",
    source=f"{NANDA}, §4; the addition theorems of cosine and sine",
    covers=("S3-130",),
)
def angles_add() -> Statement:
    """Two rotations in the same planes compose by adding their angles. If a number a modulo p
    stands for rotations by the angles 2πka/p for several k, then multiplying the rotations of a and
    b gives the rotation of a + b, and a full turn is no turn, which is the modulus. In the formula
    α and β hold K angles each.

    So a network that can multiply what it looks up can add modulo p. Networks trained on modular
    addition were found to do this.
    """
    return Statement(
        matmul(Rotation(first), Rotation(second)),
        Rotation(matadd(first, second)),
        on_models=False,
    )


@theorem(
    title="The Fourier circuit: the logit of c is a sum of cosines of a + b - c",
    chapter=11,
    convention="row",
    source=f"{NANDA}, §4; {CHUGHTAI}",
    covers=("S3-130",),
)
def fourier_logits() -> Statement:
    """A network that adds modulo p can compute the logit of each possible answer c as a sum of
    cosines of a + b − c, one for each frequency. It is the trace of the product of the rotations of
    a, b and, backwards, c. Each cosine is largest at the right c. In the formula α, β and γ hold
    the K angles of a, b and c.

    One frequency alone is nearly as large at a few other answers. Several frequencies agree only at
    the right one.
    """
    angles = matadd(first, second, matmul(-1, third))
    return Statement(
        Trace(matmul(Rotation(first), Rotation(second), Transpose(Rotation(third)))),
        2 * Trace(matmul(OneMatrix(1, K), Activation("cos", angles))),
        on_models=False,
    )


@theorem(
    title="The right answer has the largest logit, in every group",
    chapter=11,
    convention="row",
    source=f"{CHUGHTAI}, §3 and §4; for modular addition: {NANDA}",
    covers=("S3-130",),
)
def right_answer_is_largest() -> Bound:
    """If elements of a group are represented by orthogonal n × n matrices, the logit tr(R_a R_b
    R_cᵀ) is largest, equal to n, exactly where R_c = R_a R_b, which is the right answer. The
    difference from n is ½‖R_a R_b − R_c‖².

    So such networks can compute products in any group. For addition modulo a prime p one frequency
    is enough to tell all answers apart.
    """
    one, two, answer = (MatrixSymbol(name, n, n) for name in ("R_a", "R_b", "R_c"))
    orthogonal = tuple((matmul(each, Transpose(each)), Identity(n)) for each in (one, two, answer))
    return Bound(
        Trace(matmul(one, two, Transpose(answer))),
        n,
        because=(Square(minus(matmul(one, two), answer), sympy.Rational(1, 2)),),
        given=orthogonal,
        tight={"R_a": [[0, 1], [-1, 0]], "R_b": [[0, 1], [-1, 0]], "R_c": [[-1, 0], [0, -1]]},
        on_models=False,
    )


A, B = MatrixSymbol("A", p, d), MatrixSymbol("B", p, d)
C = MatrixSymbol("C", d, p)


@theorem(
    title="Squares multiply: the difference of two squares is a product",
    chapter=11,
    convention="row",
    source=GROMOV,
    covers=("S3-130",),
)
def product_of_squares() -> Statement:
    """Two squares multiply numbers: (A + B)² − (A − B)² = 4AB, entry by entry. So a pair of hidden
    units that square their input, with output weights of opposite sign, multiplies what is looked
    up for two inputs.

    This is all that the Fourier circuit for modular addition needs of a nonlinearity.
    """
    plus, less = matadd(A, B), minus(A, B)
    return Statement(
        minus(entrywise(plus, plus), entrywise(less, less)),
        matmul(4, entrywise(A, B)),
        on_models=False,
    )


@theorem(
    title="The logits of the network are of degree three in its weights",
    chapter=11,
    convention="row",
    source=f"{VARMA}, §3, on parameter norm and logit scale; {GROMOV}",
    covers=("S3-130",),
)
def logits_have_degree_three() -> Statement:
    """In a network with one hidden layer of squared units, (A + B)² C, multiplying all weights by t
    multiplies the logits by t³. So logits divided by the cube of the weights' norm do not depend on
    the scale of the weights.

    This ratio measures the efficiency of a circuit: how large its logits are for its norm
    (`generalising_is_efficient`).
    """
    t = sympy.Symbol("t", real=True)

    def logits(scale: sympy.Expr) -> sympy.MatrixExpr:
        hidden = matmul(scale, matadd(A, B))
        return matmul(entrywise(hidden, hidden), matmul(scale, C))

    return Statement(logits(t), matmul(t**3, logits(sympy.Integer(1))), on_models=False)


@theorem(
    title="fourier_addition and circuit_efficiency: a network that adds, written by hand",
    chapter=11,
    source=f"{GROMOV}; {NANDA}",
    covers=("S3-130",),
)
def fourier_addition_method() -> Method:
    """`fourier_addition` makes a network that adds modulo p with weights written by hand, and
    `circuit_efficiency` measures logits per norm. Checked: with three frequencies modulo 11, the
    logits are sums of cosines and all answers are right; and the efficiency of the trained network,
    from its margins by loops over the training pairs.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        if model.n_layers:  # the network is no transformer: once is enough
            return
        modulus, frequencies = 11, (1, 3, 4)
        network = fourier_addition(modulus, frequencies)
        each = range(modulus)
        plain = np.array(
            [
                [
                    [
                        fsum(cos(2 * pi * k * (a + b - c) / modulus) for k in frequencies)
                        for c in each
                    ]
                    for b in each
                ]
                for a in each
            ]
        )
        bound = gamma(200, UNIT) * 3
        yield Trial("logits", network.logits(), plain, bound)
        right = [[int(plain[a, b].argmax() == (a + b) % modulus) for b in each] for a in each]
        yield Trial("answers", network.right().astype(int), np.array(right), 0.0)
        run = _run()
        found, sizes = run.generalises.logits(), run.generalises
        margins = [
            found[a, b, (a + b) % 31] - max(np.delete(found[a, b], (a + b) % 31))
            for a, b in np.argwhere(run.trained_on)
        ]
        scale = fsum(float(np.square(each).sum()) for each in (sizes.A, sizes.B, sizes.C))
        margin = fsum(margins) / len(margins) / scale**1.5
        near = gamma(len(margins) + 3 * _terms(sizes), UNIT)
        largest = float(np.abs(found).max()) / scale**1.5
        yield Trial("efficiency", circuit_efficiency(sizes, run.trained_on), margin, near * largest)
        yield Trial("share of the sum", share_of_the_sum(network), 1.0, bound)

    rests = ("fourier_logits", "angles_add", "product_of_squares", "right_answer_is_largest")
    return Method("ot.circuit_efficiency", rests, trials)


def _terms(network: AdditionNetwork) -> int:
    """Return how many weights a network has."""
    return sum(each.size for each in (network.A, network.B, network.C))


@lru_cache(maxsize=1)
def _run() -> AdditionRun:
    return load_addition()


def _see_grokking(load: Load) -> Observed:
    run = _run()
    steps, right, others = run.curve[:, 0], run.curve[:, 2], run.curve[:, 3]
    early = int(np.searchsorted(steps, run.recipe.memorised_at))
    done = next((int(step) for step, share in zip(steps, others, strict=True) if share > 0.99), 0)
    figure = (
        f"addition modulo {run.recipe.p}, trained on {run.recipe.share:.0%} of all pairs: after "
        f"{steps[early]:.0f} steps {right[early]:.1%} of these and {others[early]:.1%} of the "
        f"others are right, after {done} steps more than 99%, at the end {others[-1]:.1%}"
    )
    values = {
        "right about trained pairs, early": float(right[early]),
        "wrong about others, early": float(1 - others[early]),
        "right about others, at the end": float(others[-1]),
    }
    return Observed(figure, values)


@theorem(
    title="Grokking: memorising long before generalising",
    chapter=11,
    source=f"{EMERGENT}; Power et al. 2022, “Grokking”; {GROMOV}",
    covers=("S3-130",),
)
def grokking_seen() -> Observation:
    """Grokking: a network is right about all training examples long before it is right about
    others. A network with one hidden layer of 128 squared units is trained on modular addition, by
    `otimes train modular_addition`, which takes half a minute. The curve of its training is in the
    repository, and the steps at which the two accuracies become high are compared.
    """
    return Observation(
        "more than 99% of the trained pairs are right while more than 90% of the others are "
        "wrong, and more than 99% of the others are right at the end",
        _see_grokking,
        {
            "right about trained pairs, early": 0.99,
            "wrong about others, early": 0.9,
            "right about others, at the end": 0.99,
        },
        control=False,
    )


def _see_efficiency(load: Load) -> Observed:
    run = _run()
    networks = (run.memorises, run.generalises)
    scales = [circuit_efficiency(each, run.trained_on) for each in networks]
    figure = (
        f"mean margin on the trained pairs for weights of norm one: {scales[0]:.2g} when it "
        f"memorises (norm {networks[0].norm:.1f}) and {scales[1]:.2g} at the end (norm "
        f"{networks[1].norm:.1f})"
    )
    return Observed(figure, {"ratio": scales[1] / scales[0]})


@theorem(
    title="The circuit that generalises is the more efficient one",
    chapter=11,
    source=f"{EMERGENT}; {VARMA}",
    covers=("S3-130",),
)
def generalising_is_efficient() -> Observation:
    """Why does training leave a solution that is right about everything it is shown? The proposed
    reason is weight decay, which penalises ‖θ‖²: a circuit that generalises has larger logits for
    its norm. The efficiencies of the network that memorises and of the one that generalises are
    compared, with margins on the training pairs only, where both are right.
    """
    return Observation(
        "the margin on the trained pairs for weights of norm one is larger at the end than when "
        "the network only memorises",
        _see_efficiency,
        {"ratio": 1.0},
        control=False,
    )


def _see_waves(load: Load) -> Observed:
    run, rng = _run(), np.random.default_rng(0)
    final = run.generalises
    shapes = [each.shape for each in (final.A, final.B, final.C)]
    chance = [
        _largest(AdditionNetwork(*(rng.standard_normal(shape) for shape in shapes)))
        for _ in range(20)
    ]
    found, early, share = _largest(final), _largest(run.memorises), share_of_the_sum(final)
    figure = (
        f"the largest frequency has {found:.0%} of the weights of a hidden unit in the mean, "
        f"{early:.0%} when it only memorises, at most {max(chance):.0%} in 20 random networks; "
        f"{share:.0%} of the variance of the logits is a function of a + b - c"
    )
    return Observed(figure, {"above random networks": found - max(chance), "of a + b - c": share})


def _largest(network: AdditionNetwork) -> float:
    return float(fourier_shares(network).max(axis=1).mean())


@theorem(
    title="Trained hidden units are waves",
    chapter=11,
    source=f"{NANDA}, §4; {GROMOV}",
    covers=("S3-130",),
)
def trained_units_are_waves() -> Observation:
    """Are the hidden units of the trained network waves of one frequency each, as in the Fourier
    circuit? There each unit has one frequency in its weights from a, from b and to c, and the
    logits depend on a + b − c only. Both are measured at the end of training (`fourier_logits`).
    """
    return Observation(
        "the mean share of the largest frequency in a hidden unit is above that in each of 20 "
        "random networks, and more than half of the variance of the logits is a function of "
        "a + b - c",
        _see_waves,
        {"above random networks": 0.0, "of a + b - c": 0.5},
        control=False,
    )


# -- fine-tuning -----------------------------------------------------------------------------------


def _contrasts(d_vocab: int) -> Iterator[tuple[list[int], list[int]]]:
    """Yield pairs of prompts: tokens repeated once, and the same with others the first time."""
    rng = np.random.default_rng(4)
    for _ in range(1):
        said = rng.choice(d_vocab, size=14, replace=False).tolist()
        once, again = said[:7], said[:4]
        other = [*once[:3], *said[7:9], *once[5:]]
        yield [*once, *again], [*other, *again]


def _see_stability(load: Load) -> Observed:
    model, text = load("induction"), sample_tokens()
    windows = [text[at : at + 20] for at in range(0, 64, 16)]
    tuned = fine_tune(model, windows, steps=2)
    losses = last_loss(model, windows), last_loss(tuned, windows)
    pairs = list(_contrasts(model.d_vocab))
    found = [circuit_overlap(model, tuned, clean, corrupt) for clean, corrupt in pairs]
    shared, cosine = (float(np.mean(each)) for each in zip(*found, strict=True))
    figure = (
        f"`induction` after two gradient steps on code: loss {losses[0]:.2f} before and "
        f"{losses[1]:.2f} nats after; on repeated random tokens {shared:.0%} of the four heads "
        f"with the largest effects are the same, and all effects have a cosine of {cosine:.3f}"
    )
    saved = 1 - losses[1] / losses[0]
    return Observed(figure, {"loss saved": saved, "shared heads": shared, "cosine": cosine})


@theorem(
    title="Is a circuit the same after fine-tuning?",
    chapter=11,
    source=f"{EMERGENT}; {PRAKASH}; Jain et al. 2024",
    covers=("S3-129",),
)
def circuit_survives_fine_tuning() -> Observation:
    """Does a circuit stay the same when the model is fine-tuned on something else? `induction` is
    fine-tuned on four windows of code by two gradient steps, each 2 % of the norm of the weights.
    Its circuit for repeated random tokens is compared by the effects of patching its heads.

    Models with random weights keep theirs as well, since two small steps change no effect by much,
    so this says little. Two models trained apart for long would be needed.
    """
    return Observation(
        "fine-tuning takes away more than a tenth of the loss, more than 70% of the four heads "
        "with the largest effects are the same, and the cosine of the effects is above 0.9",
        _see_stability,
        {"loss saved": 0.1, "shared heads": 0.7, "cosine": 0.9},
        outcome="seen at random too",
    )
