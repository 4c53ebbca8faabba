"""Orders, the replay and single paths against every path by itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from otimes.algebra.errors import OtimesError
from otimes.numeric.forward import mlp as run_mlp
from otimes.numeric.paths.ensemble import paths
from otimes.numeric.paths.orders import order_streams, replay_streams
from tests.numeric.paths.cases import NAMES, case, close, enumeration, on_case


@pytest.mark.parametrize("name", NAMES)
def test_orders_are_the_sums_of_their_paths(name: str) -> None:
    on_prompt, every = on_case(name), enumeration(name)
    expected = every.by_order()
    close(on_prompt.by_order(), expected)
    for order, logits in enumerate(expected):
        if np.abs(logits).max():  # an order's own size, or a wrong small one would go unseen
            close(on_prompt.by_order()[order], logits)
    close(on_prompt.by_order().sum(axis=0), every.places["logits"])


@pytest.mark.parametrize("name", NAMES)
def test_the_replay_gives_the_cumulative_sums(name: str) -> None:
    on_prompt = on_case(name)
    close(on_prompt.replay(), np.cumsum(enumeration(name).by_order(), axis=0))


@pytest.mark.parametrize("name", NAMES)
def test_a_path_by_itself(name: str) -> None:
    on_prompt, every = on_case(name), enumeration(name)
    values = every.values(4, 7)
    for order in range(on_prompt.model.n_layers + 1):  # each order by its own size
        chosen = [path for path in values if len(path) == order]
        expected = [values[path] for path in chosen]
        close([on_prompt.path(path, 4, 7) for path in chosen], expected)
        close([on_prompt.path(path[::-1], 4, 7) for path in chosen], expected)


def test_the_replay_shares_nothing_with_the_graded_pass_but_the_layers() -> None:
    frozen = paths(*case("deep everything")).frozen
    *_, last = replay_streams(frozen)
    close(last, order_streams(frozen).sum(axis=0))


def test_only_what_is_selected_is_given() -> None:
    on_prompt = paths(*case("deep gpt2"))
    every = on_prompt.by_order()
    close(on_prompt.by_order(position=[-1, 2], token=[4, 0, 9]), every[:, [-1, 2]][:, :, [4, 0, 9]])
    close(on_prompt.by_order(position=2, token=5), every[:, 2, 5])
    close(on_prompt.by_order(token=[5]), every[:, :, [5]])
    close(on_prompt.by_order(position=np.int64(3)), every[:, 3])


def test_a_block_of_the_vocabulary_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    import otimes.numeric.frozen

    on_prompt = paths(*case("gptj"))
    every = on_prompt.by_order()
    monkeypatch.setattr(otimes.numeric.frozen, "TOKENS_AT_ONCE", 4)
    close(on_prompt.by_order(), every)


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda p: p.by_order(position=6), "position 6 is out of range: the prompt has .* 0 to 5"),
        (lambda p: p.by_order(position=[0, -7]), "position -7 is out of range"),
        (lambda p: p.by_order(position=[[0]]), "position must be an integer or a list of them"),
        (lambda p: p.by_order(position=True), "a position must be an integer, got True"),
        (lambda p: p.by_order(token=[11]), "token 11 is not in the vocabulary .* 0 to 10"),
        (lambda p: p.by_order(token=[-1]), "token -1 is not in the vocabulary"),
        (lambda p: p.by_order(token=["a"]), "token ids must be integers"),
        (lambda p: p.heads(0, (1, 2, 3)), "a logit difference is a pair of two tokens"),
        (lambda p: p.heads(0, np.ones(4)), r"a direction must have shape \(d_model,\) = \(5,\)"),
        (lambda p: p.heads(0, [1, 2]), r"the target must be one token, .* got \[1, 2\]"),
        (lambda p: p.heads(0, None), "token ids must be integers, got None"),
        (lambda p: p.path([(0,)], 0, 0), r"a path is a list of heads, .* got \[\(0,\)\]"),
        (lambda p: p.path(3, 0, 0), "a path is a list of heads, .* got 3"),
        (lambda p: p.path([(0, 0.5)], 0, 0), "a path is a list of heads"),
        (lambda p: p.scores("a", 0, 0), "a path is a list of heads"),
        (lambda p: p.top(2.5, 0, 0), "must be integers of at least 1, got k=2.5"),
        (lambda p: p.path([(0, 1), (0, 2)], 0, 0), "0.1 → 0.2 is no path: .* heads of the same"),
        (lambda p: p.path([(2, 0)], 0, 0), "head 2.0 is out of range: random has 2 layers"),
    ],
)  # fmt: skip
def test_what_there_is_not(ask, said: str) -> None:
    with pytest.raises(OtimesError, match=said):
        ask(paths(*case("attention only")))


def test_what_is_held_fixed_of_mlps_is_one_of_two_things() -> None:
    with pytest.raises(
        OtimesError, match=r"mlp must be 'sources' .* or 'gates' .* got mlp='outputs'"
    ):
        paths(*case("gpt2"), mlp="outputs")  # type: ignore[arg-type]


def test_without_mlps_there_is_nothing_to_choose() -> None:
    model, tokens = case("deep biases only")
    sources, gates = (paths(model, tokens, mlp=kind) for kind in ("sources", "gates"))
    assert np.array_equal(sources.by_order(), gates.by_order())


def test_frozen_gates_of_relu_are_the_mlp_of_a_neighbourhood() -> None:
    """Other activations have the right value only: their gates move with what they read."""
    model, tokens = case("mlp without norms")
    for activation, right in (("relu", True), ("gelu", False), ("silu", False)):
        config = replace(model.config, activation=activation)
        frozen = paths(model.changed({}, config), tokens, mlp="gates").frozen
        mlp = frozen.mlp(0)
        assert mlp is not None
        weights = model.changed({}, config).layer(0)
        read = model.changed({}, config).forward(tokens)["resid_mid.0"]
        moved = read * (1 + 1e-6)
        assert (np.sign(read @ weights.W_in) == np.sign(moved @ weights.W_in)).all()
        change = (
            run_mlp(config, weights, moved)["mlp_out"] - run_mlp(config, weights, read)["mlp_out"]
        )
        linear = mlp.apply((moved - read)[None])[0]
        off = np.abs(change - linear).max() / np.abs(linear).max()
        assert (off < 1e-8) == right, activation


def test_other_types_are_refused() -> None:
    with pytest.raises(OtimesError, match="float64 or float32, not in float16"):
        paths(*case("attention only"), dtype=np.float16)
