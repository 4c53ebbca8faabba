"""The circuits of a head, W_V W_O and W_Q W_Kᵀ, and what people compute instead.

Ingredients: the two factors, the gains folded into them, the heads summed over, and what is done
to the product. Conventions: rows. Source: Elhage et al. 2021.
"""

from collections.abc import Callable, Iterator

import numpy as np

from numeric.audit.asked import SCREENED, Array, Asked, Formula, Mistakes, Replaced

BEHIND = {"W_Q": "W_Qᵀ", "W_K": "W_Kᵀ", "W_V": "W_Vᵀ", "W_O": "W_O"}
"""How each weight is written as the right factor of a circuit."""

OV, QK = ("W_V", "W_O"), ("W_Q", "W_K")


def factor(asked: Asked, name: str, layer: int, head: int) -> Array:
    """Return a weight of a head as a factor [d_model, d_head], a circuit being left @ rightᵀ."""
    weight = asked.weight(name, layer, head)
    return weight.T if name == "W_O" else weight


def factors(asked: Asked, letters: tuple[str, str], replaced: Replaced) -> tuple[Array, Array]:
    """Return the two factors of a head's circuit, each [d_model, d_head], as they are asked for."""
    layer, head = asked.one_head()
    both = []
    for side, letter in zip(("left", "right"), letters, strict=True):
        made = replaced.get(f"{side}_made", "")
        if made == "strided":
            every = [factor(asked, letter, layer, each) for each in range(asked.model.n_heads)]
            one = np.concatenate(every, axis=1)[:, head :: asked.model.n_heads]
        else:
            one = factor(asked, *replaced.get(side, (letter, layer, head)))
        if made == "reshaped":
            one = one.T.reshape(one.shape) if letter == "W_O" else one.reshape(one.T.shape).T
        if side in replaced.get("centred", ()):
            one = one - one.mean(0)
        norm, power, of = (*replaced.get(f"{side}_gain", ("", 0)), layer)[:3]
        if norm:
            gain = asked.model.part(f"{norm}_gain")
            gain = gain if norm == "ln_final" else gain[of]
            with np.errstate(all="ignore"):
                one = gain[:, None] ** power * one
        both.append(one)
    return both[0], both[1]


def circuit_of(letters: tuple[str, str]) -> Formula:
    """Return the formula of a circuit by its two factors."""

    def circuit(asked: Asked, replaced: Replaced) -> Array:
        if "heads" in replaced:
            layer, head = asked.one_head()
            n_heads = asked.model.n_heads
            heads = {
                "up_to": range(head + 1),
                "others": [each for each in range(n_heads) if each != head],
            }.get(replaced["heads"], range(n_heads))
            others = {name: each for name, each in replaced.items() if name != "heads"}
            each_head = [circuit(asked.of(layer, each), others) for each in heads]
            total = np.sum(each_head, axis=0) if each_head else np.zeros(())
            return np.asarray(total / n_heads if replaced["heads"] == "mean" else total)
        left, right = factors(asked, letters, replaced)
        change = replaced.get("change", "")
        if change == "small":
            return np.asarray(right.T @ left)
        if change == "vocabulary":
            embed = asked.moved(asked.model.part("W_E"))
            left, side = embed @ left, asked.model.part("W_U").T if letters == OV else embed
            right = side @ right
        columns = slice(SCREENED) if asked.screening else slice(None)
        if isinstance(change, int):
            return _of_rank(left, right, change, columns)
        if not change:
            return np.asarray(left @ right[columns].T)
        return np.asarray(CHANGES[change](left @ right.T))

    return circuit


def _of_rank(left: Array, right: Array, rank: int, columns: slice) -> Array:
    """Return columns of the best approximation of left @ rightᵀ that has a rank."""
    (Q, R), (P, S) = np.linalg.qr(left), np.linalg.qr(right)
    U, values, W = np.linalg.svd(R @ S.T)
    return np.asarray((Q @ U[:, :rank]) * values[:rank] @ (P[columns] @ W[:rank].T).T)


CHANGES: dict[str, Callable[[Array], Array]] = {
    "vocabulary": lambda product: product,
    "identity": lambda product: product + np.eye(len(product)),
    "residual": lambda product: product - np.eye(len(product)),
    "symmetric": lambda product: (product + product.T) / 2,
    "rows_normalised": lambda product: product / np.linalg.norm(product, axis=1, keepdims=True),
    "columns_normalised": lambda product: product / np.linalg.norm(product, axis=0),
    "normalised": lambda product: product / np.linalg.norm(product),
    "spectral": lambda product: product / np.linalg.norm(product, 2),
    "twice": lambda product: product @ product,
    "antisymmetric": lambda product: (product - product.T) / 2,
    "no_diagonal": lambda product: product - np.diag(np.diag(product)),
}


def circuit_mistakes(letters: tuple[str, str]) -> Mistakes:
    """Return the known mistakes of a circuit: factors, heads and gains mixed up, and changes."""

    def mistakes(asked: Asked, shape: tuple[int, ...]) -> Iterator[tuple[str, Replaced]]:
        model = asked.model
        if shape == (model.d_head, model.d_head):
            yield "the product inside the head, [d_head, d_head]", {"change": "small"}
        if shape == (model.d_vocab, model.d_vocab):
            yield "the full circuit on the vocabulary", {"change": "vocabulary"}
        yield from changes_of_a_circuit(letters, asked)
        for side, letter in zip(("left", "right"), letters, strict=True):
            for other in asked.other_heads():
                yield f"{letter} of another head, {other[0]}.{other[1]}", {side: (letter, *other)}
        for other in asked.other_heads():
            turned = {"left": (letters[1], *other), "right": (letters[0], *other)}
            yield f"the circuit of another head, {other[0]}.{other[1]}, transposed", turned
        for rank in range(1, model.d_head):
            yield f"the circuit cut off behind {rank} singular values", {"change": rank}

    return mistakes


def changes_of_a_circuit(letters: tuple[str, str], asked: Asked) -> Iterator[tuple[str, Replaced]]:
    """Yield what is made of the weights and the circuit of a head, or of all heads of its layer."""
    layer, head = asked.one_head()
    yield from _other_factors(letters, layer, head)
    for side, letter in zip(("left", "right"), letters, strict=True):
        for made, says in (
            ("reshaped", f"{letter} reshaped where it is to be transposed"),
            ("strided", f"{letter} of a head taken with a stride, every n_heads-th column"),
        ):
            yield says, {f"{side}_made": made}
    yield "the sum over all heads of the layer", {"heads": "sum"}
    yield "the mean over all heads of the layer", {"heads": "mean"}
    yield "the sum over the other heads of the layer", {"heads": "others"}
    yield "the sum over the heads of the layer up to this one", {"heads": "up_to"}
    yield from _gains(letters, layer, asked.model.n_layers)
    if letters == OV:
        yield "a circuit with the identity added: the residual stream", {"change": "identity"}
        yield "a circuit less the identity", {"change": "residual"}
    yield "the symmetric part of the circuit", {"change": "symmetric"}
    yield "the antisymmetric part of the circuit", {"change": "antisymmetric"}
    reads, writes = ("reads", "writes") if letters == OV else ("queries", "keys")
    yield f"what it {reads} centred: the column means subtracted", {"centred": ("left",)}
    yield f"what it {writes} centred: the row means subtracted", {"centred": ("right",)}
    yield "a circuit centred on both sides", {"centred": ("left", "right")}
    for change, says in (
        ("rows_normalised", "a circuit whose rows are normalised to length one"),
        ("columns_normalised", "a circuit whose columns are normalised to length one"),
        ("normalised", "a circuit divided by its Frobenius norm"),
        ("spectral", "a circuit divided by its spectral norm"),
        ("no_diagonal", "a circuit whose diagonal is set to zero"),
        ("twice", "the circuit applied twice"),
    ):
        yield says, {"change": change}


def _other_factors(
    letters: tuple[str, str], layer: int, head: int
) -> Iterator[tuple[str, Replaced]]:
    """Yield circuits of other weights of the same head."""
    right = f"{letters[0]} {BEHIND[letters[1]]}"
    for left in BEHIND:
        for other in BEHIND:
            if (left, other) == letters:
                continue
            says = f"{'W_Oᵀ' if left == 'W_O' else left} {BEHIND[other]} for {right}"
            if (other, left) == letters and letters == OV:
                says = "W_O W_V for W_V W_O: the circuit transposed, as columns have it"
            elif (other, left) == letters:
                says = f"{says}: the circuit transposed"
            elif other == letters[1]:
                says = f"{left} for {letters[0]}, {says}"
            elif left == letters[0]:
                says = f"{other} for {letters[1]}, {says}"
            elif (left, other) in (OV, QK):
                says = f"the {'QK' if (left, other) == QK else 'OV'} circuit: {says}"
            yield says, {"left": (left, layer, head), "right": (other, layer, head)}


def _gains(letters: tuple[str, str], layer: int, n_layers: int) -> Iterator[tuple[str, Replaced]]:
    """Yield weights with gains of norms in them."""
    first, second = letters
    for other in range(n_layers):
        if other != layer:
            sides = ("left_gain",) if letters == OV else ("left_gain", "right_gain")
            says = f"weights with the gain of the norm of another layer, {other}, folded in"
            yield says, dict.fromkeys(sides, ("ln1", 1, other))
    yield (
        f"weights with the gain of the norm folded in ({first})",
        {"left_gain": ("ln1", 1)},
    )
    for power, says in ((2, "twice (squared)"), (-1, "divided out")):
        yield f"{first} with the gain of ln1 folded in {says}", {"left_gain": ("ln1", power)}
    yield f"{first} with the gain of ln2, which is another norm", {"left_gain": ("ln2", 1)}
    if letters == QK:
        both: Replaced = {"left_gain": ("ln1", 1), "right_gain": ("ln1", 1)}
        yield "weights with the gain of the norm folded in", both
        yield f"weights with the gain of the norm folded in ({second})", {"right_gain": ("ln1", 1)}
    else:
        for norm in ("ln1", "ln2", "ln_final"):
            yield f"{second} with the gain of {norm} on what it writes", {"right_gain": (norm, 1)}


ov_circuit, qk_circuit = circuit_of(OV), circuit_of(QK)
