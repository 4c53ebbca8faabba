"""Relevance against the rule itself, handed back from sum to sum on what a pass recorded."""

import numpy as np
import pytest

from otimes.algebra.errors import OtimesError
from otimes.numeric.attribution.gradients import gradient_times_input
from otimes.numeric.attribution.relevance import relevance
from otimes.numeric.model import Model
from tests.numeric.attribution.cases import BUNDLED, FOIL, POSITION, TARGET, case, near
from tests.numeric.random_models import KINDS, TINY_TOKENS, random_model


class ByTheRule:
    """R_i = Σ_j a_i w_ij / (z_j + ε sign z_j) R_j, one sum after the other, biases collected.

    Where a term of a sum is a bias, its part goes to `biases`. A norm is the matrix C diag(g) / s,
    and no sum is damped there. Rows of one position mix in `pattern` only.
    """

    def __init__(self, model: Model, tokens: list[int], epsilon: float) -> None:
        self.model, self.epsilon, self.biases = model, epsilon, 0.0
        self.tokens = tokens
        self.places = model.forward(tokens)

    def split(self, terms, bias, R, epsilon: float | None = None):
        """Return the part of R [..., j] that goes to each of `terms` [..., i, j]; axis -2 sums."""
        epsilon = self.epsilon if epsilon is None else epsilon
        bias = np.broadcast_to(bias, R.shape)
        z = terms.sum(axis=-2) + bias
        s = R / (z + epsilon * np.sign(z))
        self.biases += float((bias * s).sum())
        return terms * s[..., None, :]

    def through(self, rows, W, bias, R, epsilon: float | None = None):
        """Return the relevance of rows [pos, i] that were multiplied by W [i, j]."""
        return self.split(rows[..., None] * W, bias, R, epsilon).sum(axis=-1)

    def norm(self, rows, gain, bias, R):
        config = self.model.config
        if config.norm == "none":
            return R
        d = config.d_model
        C = np.eye(d) - (1 / d if config.norm == "layer" else 0)
        centred = rows @ C
        s = np.sqrt((centred**2).mean(axis=1) + config.norm_eps)
        W = C[None] * gain / s[:, None, None]
        return self.through(rows, W, bias, R, 0.0)

    def run(self, target: int, foil: int | None, position: int):
        model, at, config = self.model, self.places, self.model.config
        n, d = at["embed"].shape
        W_U = model.W_U[:, target] - (0 if foil is None else model.W_U[:, foil])
        b_U = model.b_U[target] - (0 if foil is None else model.b_U[foil])
        last = at["ln_final" if config.final_norm else "final"]
        f = last[position] @ W_U + b_U
        R = np.zeros((n, d))
        to_logit = self.split(last[position][:, None] * W_U[:, None], b_U, np.array([f]))
        R[position] = to_logit[:, 0]
        if config.final_norm:
            kept = self.norm(
                at["final"][[position]], model.ln_final_gain, model.ln_final_bias, R[[position]]
            )
            R = np.zeros((n, d))
            R[position] = kept[0]
        for layer in reversed(range(model.n_layers)):
            R = self.block(layer, R)
        zero = np.zeros((n, d))
        learned = config.positions == "learned"
        W_pos = model.W_pos[:n] if learned else zero
        if learned:
            both = np.stack([at["embed"], W_pos], axis=1)
            R, R_pos = np.moveaxis(self.split(both, 0.0, R), 1, 0)
        else:
            R_pos = zero
        return R.sum(axis=1), R_pos.sum(axis=1), self.biases, f

    def block(self, layer: int, R):
        model, config = self.model, self.model.config
        at = {name[: -len(str(layer)) - 1]: each for name, each in self.places.items()
              if name.endswith(f".{layer}")}  # fmt: skip
        to_pre = 0.0
        if config.d_mlp:
            parts = np.stack([at["resid_mid"], at["mlp_out"]], axis=1)
            R, R_out = np.moveaxis(self.split(parts, 0.0, R), 1, 0)
            R_post = self.through(at["mlp_post"], model.W_out[layer], model.b_out[layer], R_out)
            source = at["resid_pre"] if config.parallel else at["resid_mid"]
            read = at["ln2"] if config.norm != "none" else source
            R_in = self.through(read, model.W_in[layer], model.b_in[layer], R_post)
            R_in = self.norm(source, model.ln2_gain[layer], model.ln2_bias[layer], R_in)
            if config.parallel:
                to_pre = R_in
            else:
                R = R + R_in
        parts = np.stack([at["resid_pre"], at["attn_out"]], axis=1)
        R, R_out = np.moveaxis(self.split(parts, 0.0, R), 1, 0)
        z = at["z"].transpose(1, 0, 2).reshape(len(R), -1)
        W_O = model.W_O[layer].reshape(-1, config.d_model)
        R_z = self.through(z, W_O, model.b_O[layer], R_out)
        R_z = R_z.reshape(len(R), config.n_heads, config.d_head).transpose(1, 0, 2)
        mixed = at["pattern"][..., None] * at["v"][:, None]  # [head, query, key, d_head]
        R_v = self.split(mixed, 0.0, R_z).sum(axis=1)
        read = at["ln1"] if config.norm != "none" else at["resid_pre"]
        R_read = sum(
            self.through(read, model.W_V[layer, h], model.b_V[layer, h], R_v[h])
            for h in range(config.n_heads)
        )
        return (
            R
            + to_pre
            + self.norm(at["resid_pre"], model.ln1_gain[layer], model.ln1_bias[layer], R_read)
        )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [0.0, 1e-3, 0.3])
def test_relevance_is_the_rule_handed_back(kind: str, epsilon: float) -> None:
    model, tokens = case(kind)
    tokens = tokens[: POSITION + 1]  # behind it sums are relevant for nothing, and 0/0 is not meant
    token, position, biases, f = ByTheRule(model, tokens, epsilon).run(TARGET, FOIL, POSITION)
    found = relevance(model, tokens, TARGET, FOIL, POSITION, epsilon=epsilon)
    # The rule divides by sums that cancel: 1e-9 of the largest is what that leaves of 1e-16.
    assert near(found.at(part="token").values, token, 1e-9)
    assert near(found.at(part="position").values, position, 1e-9)
    assert near(found.at(part="biases").values.sum(), biases, 1e-9)
    assert near(found.whole, f)


@pytest.mark.parametrize("kind", [*KINDS, *BUNDLED])
def test_nothing_is_lost_but_by_epsilon(kind: str) -> None:
    model, tokens = case(kind)
    found = relevance(model, tokens, TARGET, FOIL, POSITION)
    logits = model.forward(tokens)["logits"][POSITION]
    assert near(found.whole, logits[TARGET] - logits[FOIL], 1e-11)
    assert abs(found.missing) <= 1e-12 * np.abs(found.values).sum()
    assert not found.values[:, POSITION + 1 :].any()
    damped = relevance(model, tokens, TARGET, FOIL, POSITION, epsilon=0.1)
    assert abs(damped.missing) > 1e-3 * abs(found.whole)


def test_positive_sums_lose_what_epsilon_takes() -> None:
    """One sum z of positive terms keeps z / (z + ε) of what it is relevant for."""
    model = random_model(KINDS["without layers"])
    model = model.changed({name: np.abs(weight) for name, weight in model.weights.items()})
    f = float(model.W_E[3] @ model.W_U[:, 1])
    found = relevance(model, [3], 1, epsilon=0.25)
    assert near(found.at(part="token").values, [f * f / (f + 0.25)])


def test_where_patterns_are_held_it_is_gradient_times_input() -> None:
    """A head that attends evenly whatever it reads: nothing is held that would have moved."""
    model = random_model(KINDS["biases only"])
    even = model.changed({name: np.zeros_like(model.weights[name]) for name in ("W_Q", "W_K")})
    found = relevance(even, TINY_TOKENS, TARGET, FOIL)
    gradient = gradient_times_input(even, TINY_TOKENS, TARGET, FOIL)
    assert near(found.at(part="token").values, gradient.values)
    bare = even.changed({name: np.zeros_like(each) for name, each in even.weights.items()
                         if name.startswith("b_")})  # fmt: skip
    assert abs(gradient_times_input(bare, TINY_TOKENS, TARGET, FOIL).missing) < 1e-12


def test_wrong_use() -> None:
    with pytest.raises(OtimesError, match="epsilon must be non-negative, got epsilon=-1"):
        relevance(random_model(), TINY_TOKENS, 3, epsilon=-1)
    with pytest.raises(
        OtimesError, match="position 6 is out of range: the prompt has the positions 0 to 5"
    ):
        relevance(random_model(), TINY_TOKENS, 3, position=6)
