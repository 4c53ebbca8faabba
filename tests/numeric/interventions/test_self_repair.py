"""Total and direct effects of components beside plain passes, parts that are held, mistakes."""

import numpy as np
import pytest

from otimes.algebra.errors import OtimesError
from otimes.numeric.interventions.circuits import circuit
from otimes.numeric.interventions.contrast import contrast
from otimes.numeric.interventions.edges import edge_patching, path_patching
from otimes.numeric.interventions.estimates import edge_attribution
from otimes.numeric.interventions.frozen import held
from otimes.numeric.interventions.hooks import hook
from otimes.numeric.interventions.passes import intervene
from otimes.numeric.interventions.patching import activation_patching
from otimes.numeric.interventions.self_repair import self_repair
from otimes.numeric.model import Model
from tests.numeric.interventions.plain import plain, with_edges
from tests.numeric.random_models import KINDS, TINY_TOKENS, random_model

OTHER = [5, 1, 10, 2, 0, 7]
CLOSE = 1e-10


def lead(places: dict) -> float:
    return places["logits"][-1, 3] - places["logits"][-1, 8]


@pytest.mark.parametrize("kind", ["gpt2", "llama", "neox"])
def test_effects_of_components_are_those_of_plain_passes(kind: str) -> None:
    model = random_model(KINDS[kind])
    clean, corrupt = plain(model, TINY_TOKENS), plain(model, OTHER)
    zeros = self_repair(model, TINY_TOKENS, 3, 8)
    other = self_repair(model, TINY_TOKENS, 3, 8, by="resample", source=OTHER)
    for name, number in (("head_out.0[1]", 1), ("mlp_out.0", None), ("head_out.1[2]", 2)):

        def edit(place: str, value: np.ndarray, name=name, number=number) -> np.ndarray:
            if place == name.partition("[")[0]:
                value[slice(None) if number is None else number] = 0.0
            return value

        total = lead(plain(model, TINY_TOKENS, edit)) - lead(clean)
        edge = with_edges({f"wrote {name}": np.zeros_like(clean["final"])}, {(name, "final")})
        direct = lead(plain(model, TINY_TOKENS, read=edge)) - lead(clean)
        found = zeros.at(component=name).values
        assert np.abs(found - [total, direct, total - direct]).max() < CLOSE, name
        edge = with_edges(corrupt, {(name, "final")})
        direct = lead(plain(model, TINY_TOKENS, read=edge)) - lead(clean)
        assert abs(other.at(component=name, effect="direct").values - direct) < CLOSE
    assert np.abs(zeros.at(effect="self-repair").values[0]) > 1e-3
    with pytest.raises(OtimesError, match="the replacement 'nothing' is unknown"):
        self_repair(model, TINY_TOKENS, 3, by="nothing")


def test_a_part_that_is_held_is_held_and_the_rest_is_not() -> None:
    model = random_model(KINDS["gpt2"])
    part = hook("pattern.1", heads=[0, 2], positions=[-1, 3])
    found = held(model, TINY_TOKENS, {"v.0": "zero"}, hold=["pattern.0", part])
    found.check(["pattern.0", part, hook("pattern.1", heads=2, positions=5)])
    before, after = found.before["pattern.1"], found.places["pattern.1"]
    assert np.array_equal(before[[0, 2]][:, [3, 5]], after[[0, 2]][:, [3, 5]])
    for rest in ("pattern.1", hook("pattern.1", heads=[0, 1]), hook("pattern.1", 0, [3, 4])):
        with pytest.raises(OtimesError, match=r"pattern\.1\S* is not held: it changes by up to"):
            found.check(rest)
    held(model, TINY_TOKENS, {hook("v.0", heads=1): "zero"}, hold=hook("v.0", heads=0))
    with pytest.raises(OtimesError, match=r"v\.0\[0,1\] cannot be both changed and held"):
        held(model, TINY_TOKENS, {hook("v.0", heads=[0, 1]): 0.0}, hold=hook("v.0", heads=1))
    with pytest.raises(OtimesError, match="hold must be hook points, as names or `hook"):
        held(model, TINY_TOKENS, {"v.0": 0.0}, hold=3)
    same = held(model, TINY_TOKENS, {"v.0": lambda value: value})
    with pytest.raises(OtimesError, match=r"z\.0 is not proved to be held: it does not change"):
        same.check("z.0")


def test_edge_attribution_makes_two_passes() -> None:
    model, passes = random_model(KINDS["gpt2"]), []
    forward = Model.forward

    def counted(self: Model, tokens: object, *record: object) -> dict:
        passes.append(tokens)
        return forward(self, tokens, *record)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Model, "forward", counted)
        edge_attribution(model, TINY_TOKENS, OTHER)
    assert len(passes) == 2


def test_the_top_token_is_that_of_the_position() -> None:
    model = random_model(KINDS["gpt2"])
    for position in (-1, 2):
        of = contrast(model, TINY_TOKENS, OTHER, None, None, position)
        row = model.forward(TINY_TOKENS)["logits"][position]
        assert of.target.tokens.tolist() == [row.argmax()]
        assert abs(of.clean_value - row.max()) < CLOSE


BAD = {
    "metric of many": (
        lambda m: activation_patching(*m, metric=lambda row: row),
        "one number, got",
    ),
    "metric of nan": (
        lambda m: activation_patching(*m, metric=lambda row: np.nan),
        "must be finite, got nan",
    ),
    "metric of none": (
        lambda m: edge_patching(*m, metric=lambda row: None),
        "what metric returns must be a number, got NoneType",
    ),
    "edges": (lambda m: circuit(*m, None), "edges must be a list of pairs"),
    "edge": (lambda m: circuit(*m, [3]), "an edge is a pair of a sender and a receiver, got 3"),
    "path": (lambda m: path_patching(*m, None), "a path is a list of a sender and"),
    "senders": (lambda m: edge_patching(*m, senders=5), "a name or a list of names"),
    "interventions": (lambda m: intervene(m[0], m[1], ["z.0"]), "map hook points to what"),
    "record": (lambda m: intervene(m[0], m[1], {}, record="z.0"), "record is a list of hook"),
    "seed": (lambda m: intervene(m[0], m[1], {"z.0": "noise"}, seed=-1), "seed must be a non-neg"),
    "none": (lambda m: intervene(m[0], m[1], {"z.0": lambda z: None}), "real numbers, got NoneT"),
    "complex": (lambda m: intervene(m[0], m[1], {"z.0": 1j}), "real numbers, got complex"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments_are_refused_in_a_sentence(case: str) -> None:
    call, message = BAD[case]
    with pytest.raises(OtimesError, match=message) as refused:
        call((random_model(KINDS["gpt2"]), TINY_TOKENS, OTHER))
    assert "\n" not in str(refused.value)
