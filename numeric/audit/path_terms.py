"""The term of a path through two heads, and what people compute instead.

It is A₂ A₁ W_E W_OV¹ W_OV² W_U, in a model without norms. Ingredients: each pattern and circuit
(another head's, transposed or missing), their order, the source, the unembedding, and terms added.
Source: Elhage et al. 2021.
"""

from collections.abc import Iterator
from dataclasses import replace
from operator import index

import numpy as np

from algebra.errors import OtimesError
from numeric.audit.asked import RIGHT, Array, Asked, Replaced
from numeric.audit.circuits import OV, changes_of_a_circuit, ov_circuit

Pair = tuple[int, int]


def path_term(asked: Asked, replaced: Replaced) -> Array:
    """Return $A_2 A_1 W_E W_{OV}^1 W_{OV}^2 W_U$ of two heads, in a model without norms."""
    first, second = two_heads(asked)
    source = replaced.get("source", "embed")
    stream = asked.places([source])[source]
    patterns = [
        _pattern(asked, replaced.get("pattern_1", first), replaced.get("pattern_1_made", "")),
        _pattern(asked, replaced.get("pattern_2", second), replaced.get("pattern_2_made", "")),
    ]
    circuits = [
        _circuit(asked, replaced.get("circuit_1", first), replaced.get("circuit_1_made", RIGHT)),
        _circuit(asked, replaced.get("circuit_2", second), replaced.get("circuit_2_made", RIGHT)),
    ]
    if "transposed" in replaced.get("patterns", ""):
        patterns = [each.T for each in patterns]
    if "reversed" in replaced.get("patterns", ""):
        patterns.reverse()
    mixed = patterns[1] @ patterns[0]
    if replaced.get("patterns") == "entrywise":
        mixed = patterns[1] * patterns[0]
    if replaced.get("patterns") == "added":
        mixed = patterns[1] + patterns[0]
    if replaced.get("circuits") == "each transposed":
        circuits = [each.T for each in circuits]
    if replaced.get("circuits") in ("reversed", "transposed"):
        circuits.reverse()
    circuit = circuits[0] @ circuits[1]
    if replaced.get("circuits") == "transposed":
        circuit = (circuits[1] @ circuits[0]).T
    if replaced.get("circuits") == "added":
        circuit = circuits[0] + circuits[1]
    term = mixed @ stream @ circuit @ asked.unembedding(replaced.get("unembed", "W_U"))
    for more in replaced.get("plus", ()):
        others = {name: each for name, each in replaced.items() if name in ("unembed", "source")}
        term = term + path_term(asked, {**others, **more})
    return np.asarray(term)


def two_heads(asked: Asked) -> tuple[Pair, Pair]:
    """Return the two heads of a path, the earlier one first."""
    model = asked.model
    if not model.config.bare:
        raise OtimesError("a path term is audited in models without norms, MLPs and biases")
    try:
        early, late = map(index, asked.layer)
        h, g = map(index, asked.head)
    except (TypeError, ValueError):
        raise OtimesError("a path term is one of two heads: layer=(0, 1), head=(2, 3)") from None
    one, two = asked.of(early, h).one_head(), asked.of(late, g).one_head()
    if one[0] == two[0]:
        raise OtimesError(f"a path goes through two layers, got layer=({one[0]}, {two[0]})")
    return min(one, two), max(one, two)


def _pattern(asked: Asked, of: Pair | None, made: str = "") -> Array:
    """Return the pattern of a head, or none: every position reads itself."""
    assert asked.tokens is not None
    n_pos = len(asked.tokens)
    if of is None:
        return np.eye(n_pos)
    place = f"pattern.{of[0]}"
    heads = asked.places([place])[place]
    pattern = heads[of[1]]
    return np.asarray(
        {
            "transposed": pattern.T,
            "identity": pattern + np.eye(n_pos),
            "no_diagonal": pattern - np.diag(np.diag(pattern)),
            "diagonal": np.diag(np.diag(pattern)),
            "uniform": np.tri(n_pos) / np.arange(1, n_pos + 1)[:, None],
            "sum": heads.sum(0),
            "mean": heads.mean(0),
        }.get(made, pattern)
    )


def _circuit(asked: Asked, of: Pair | None, made: Replaced) -> Array:
    if of is None:
        return np.eye(asked.model.d_model)
    return ov_circuit(replace(asked.of(*of), screening=False), made)


PATTERNS = {
    "transposed": "the pattern transposed",
    "identity": "the pattern with the identity added",
    "no_diagonal": "the pattern without its diagonal",
    "diagonal": "the diagonal of the pattern only",
    "uniform": "a uniform pattern, 1/n, for that of the model",
    "sum": "the patterns of the layer summed up",
    "mean": "the mean of the patterns of the layer",
}


def path_mistakes(asked: Asked, shape: tuple[int, ...]) -> Iterator[tuple[str, Replaced]]:
    """Yield the known mistakes of a path term."""
    first, second = two_heads(asked)
    no_first: Replaced = {"pattern_1": None, "circuit_1": None}
    no_second: Replaced = {"pattern_2": None, "circuit_2": None}
    neither: Replaced = {**no_first, **no_second}
    if shape[-1:] == (asked.model.d_model,):
        yield "the term before W_U", {"unembed": "none"}
    yield from (
        ("the product of patterns reversed: A₁ A₂ for A₂ A₁", {"patterns": "reversed"}),
        ("the product of circuits reversed", {"circuits": "reversed"}),
        ("the circuits transposed", {"circuits": "transposed"}),
        ("each of the circuits transposed", {"circuits": "each transposed"}),
        ("the first pattern only: the second is missing", {"pattern_2": None}),
        ("the second pattern only: the first is missing", {"pattern_1": None}),
        ("no pattern: both are missing", {"pattern_1": None, "pattern_2": None}),
        ("patterns multiplied entry by entry", {"patterns": "entrywise"}),
        ("patterns added and not multiplied", {"patterns": "added"}),
        ("circuits added and not multiplied", {"circuits": "added"}),
        ("the product of patterns transposed", {"patterns": "reversed transposed"}),
        ("each of the patterns transposed, A₂ᵀ A₁ᵀ", {"patterns": "transposed"}),
        ("the first head's OV circuit only: the second is missing", {"circuit_2": None}),
        ("the second head's OV circuit only: the first is missing", {"circuit_1": None}),
        ("no OV circuits", {"circuit_1": None, "circuit_2": None}),
        ("the term of one head only, the second: the first is missing", no_first),
        ("the term of one head only, the first: the second is missing", no_second),
        ("the direct term of the embedding: both heads are missing", neither),
        ("the term plus that of the second head alone (direct)", {"plus": (no_first,)}),
        ("the term plus that of the first head alone (direct)", {"plus": (no_second,)}),
        ("the term plus those of each head alone", {"plus": (no_first, no_second)}),
        (
            "the sum of all paths through the two heads, the direct one too",
            {"plus": (no_first, no_second, neither)},
        ),
        ("the sum of both heads' own terms", {**no_first, "plus": (no_second,)}),
        ("W_Eᵀ for W_U (as if tied)", {"unembed": "W_E"}),
        (
            "the two heads exchanged: the first layer's taken for the second's",
            {
                **dict.fromkeys(("pattern_1", "circuit_1"), (first[0], second[1])),
                **dict.fromkeys(("pattern_2", "circuit_2"), (second[0], first[1])),
            },
        ),
    )
    for layer in sorted({first[0], second[0]}):
        if asked.model.positions != "none" or layer:
            which = "earlier" if layer == first[0] else "later"
            stream = f"the stream before the {which} head, resid_pre.{layer},"
            yield f"{stream} for the embedding", {"source": f"resid_pre.{layer}"}
    for which, own in (("1", first), ("2", second)):
        where = f"head {own[0]}.{own[1]}"
        for made, says in PATTERNS.items():
            yield f"{says}, of {where}", {f"pattern_{which}_made": made}
        for says, replaced in changes_of_a_circuit(OV, asked.of(*own)):
            yield f"{says}, of {where}", {f"circuit_{which}_made": replaced}
        for other in asked.of(*own).other_heads():
            named, ingredients = f"{other[0]}.{other[1]}", (f"pattern_{which}", f"circuit_{which}")
            said = f"for head {own[0]}.{own[1]}"
            yield f"another head, {named}, {said}", dict.fromkeys(ingredients, other)
            yield f"the pattern of another head, {named}, {said}", {ingredients[0]: other}
            yield f"the OV circuit of another head, {named}, {said}", {ingredients[1]: other}
