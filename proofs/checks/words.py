"""That the words of an entry name the arrays that its claim reads.

An equation that holds for all matrices holds with W_K in the place of W_Q. Its words do not: they
speak of queries. So each array of a model that a claim reads is named by the title or the prose,
and each weight that the title, the first sentence or a product at the beginning names is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from otimes.algebra.language.shapes import inspect
from otimes.numeric.binding import AXES, WEIGHT_AXES
from otimes.proofs.checks.names import GENERIC
from otimes.proofs.claims import Claim

STREAM = r"stream|activation|vectors?\b|states?\b|\brows?\b|\bX\b|\bx\b|\bx_"
WRITES = r"writ|wrote|output|component"
HEADS = r"\bheads?\b|attention"
NEURONS = r"neuron|MLP|feed-forward|memor"
NORM = r"\bnorm|LayerNorm|RMSNorm"
SPOKEN: dict[str, str] = {
    "W_E": r"W_E|embed|token|skip-trigram",
    "W_U": r"W_U|unembed|logit|vocabulary|metric|out-token|output token|effects?\b|model",
    "W_pos": r"W_pos|position",
    "W_Q": r"W_Q|QK|quer",
    "W_K": r"W_K|QK|\bkeys?\b",
    "W_V": r"W_V|OV|\bvalues?\b|readers?\b|matrix that reads|read a|behind a gain",
    "W_O": r"W_O|OV|W_write|\bwrit",
    "W_in": rf"W_in|read by|reads|pre-activation|{NEURONS}",
    "W_gate": r"W_gate|gate",
    "W_out": rf"W_out|{NEURONS}",
    "b_Q": r"b_Q|query bias|bias",
    "b_K": r"b_K|key bias|bias",
    "b_V": r"b_V|value bias|bias",
    "b_O": r"b_O|output bias|bias",
    "b_in": r"b_in|bias",
    "b_gate": r"b_gate|bias",
    "b_out": r"b_out|bias",
    "b_U": r"b_U|bias",
    "ln1_gain": rf"gain|{NORM}",
    "ln1_bias": rf"bias|{NORM}",
    "ln2_gain": rf"gain|{NORM}",
    "ln2_bias": rf"bias|{NORM}",
    "ln_final_gain": rf"gain|{NORM}",
    "ln_final_bias": rf"bias|{NORM}",
    "one_hot": r"one-hot|token",
    "embed": r"embed|token|another prompt|corrupt|X_0",
    "resid_pre": rf"{STREAM}|before the layer",
    "ln1": rf"{NORM}|{STREAM}",
    "qk_in": rf"quer|\bkeys?\b|reads?\b|{STREAM}",
    "q": r"\bq\b|quer",
    "k": r"\bk\b|\bkeys?\b",
    "v": r"\bv\b|\bvalues?\b",
    "scores": r"scores?\b|logits? of attention",
    "pattern": r"patterns?\b|attention weight|\bA\b|attends?\b",
    "z": r"\bz\b|mean of (the )?values|weighted mean|mixed values",
    "head_out": rf"head.*({WRITES})|({WRITES}).*head",
    "attn_out": rf"component|wrote|writes?\b|{HEADS}",
    "resid_mid": r"after attention|resid_mid|stream",
    "ln2": rf"{NEURONS}|{NORM}",
    "mlp_pre": r"pre-activation|before the activation|mlp_pre",
    "mlp_post": r"activations?\b|mlp_post|coefficient|neurons?\b",
    "mlp_out": rf"{NEURONS}",
    "resid_post": r"stream|resid_post|after",
    "final": r"final|last|stream|X_L|next token|probabilit",
    "ln_final": r"final|last|norm|logits|next token",
    "logits": r"logit",
    "rotation": r"rota|turn",
    "grouped_W_V": r"group",
    "grouped_W_O": r"group",
    "grouped_pattern": r"group",
}
"""Arrays of a model, and words that name them."""

TOGETHER: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset({"W_V", "W_O"}), rf"{HEADS}|circuit|layer|transformer|model"),
    (frozenset({"W_Q", "W_K"}), rf"{HEADS}|scores?\b|layer|transformer|model"),
    (frozenset({"W_in", "W_out"}), NEURONS),
    (frozenset({"b_in", "W_in"}), NEURONS),
    (frozenset({"b_out", "W_out"}), NEURONS),
)
"""Arrays that are read together, and words that name them so."""

WEIGHT = r"W_(?:E|U|Q|K|V|O|in|out|gate|pos|OV|QK)|b_(?:Q|K|V|O|U|in|out)"
SPELLED = re.compile(rf"(?<![\w`])({WEIGHT})(?![A-Za-z0-9_\[])")
PRODUCT = re.compile(rf"(?<![\w`])({WEIGHT})ᵀ? ({WEIGHT})(?![A-Za-z0-9_\[])")
CAPITAL = re.compile(r"\b[A-Z](?=[a-z]{2})")  # at the beginning of a sentence
BIAS = re.compile(r"\b(query|key|value|output) bias")
PARTS = {"W_OV": {"W_O", "W_V"}, "W_QK": {"W_Q", "W_K"}}
OTHERWISE = {
    (
        "row_to_column_scores",
        "W_OV",
    ): "the title compares W_QK with it",
    ("head_is_linear_in_W_OV", "W_OV"): "U and V are two of them",
    (
        "relu_commutes_with_positive_scales",
        "W_in",
    ): "the equation has one column of it",
    ("relu_commutes_with_positive_scales", "W_out"): "the equation has one row of it",
    (
        "value_norm_depends_on_basis",
        "W_O",
    ): "no norm of values depends on it",
}
"""Weights that the words of an entry begin with and its claim does not read, with the reasons."""


def unworded(name: str, title: str, prose: str, claim: Claim) -> str:
    """Return which arrays a claim reads and its words do not name, or the reverse; empty if none.

    With `places` that is not asked, as an array that is not recorded so is noticed there.

    >>> from otimes.proofs.catalogue.symbols import X, row
    >>> from otimes.proofs.claims import Statement
    >>> stated = Statement(X * row.W_K, X * (row.W_K * 1))
    >>> unworded("mine", "Queries are linear", "A query of a sum is a sum of queries.", stated)
    'the claim is about W_K, which neither title nor prose names'
    """
    text = " ".join(f"{title} {prose}".split())
    return "; ".join([*_unnamed(text, claim), *_unread(name, title, prose, claim)])


def _unnamed(text: str, claim: Claim) -> Iterator[str]:
    if getattr(claim, "places", ()):
        return
    flat, read = CAPITAL.sub(lambda found: found.group().lower(), text), arrays_read(claim)
    pairs = [pair for pair, words in TOGETHER if pair <= read and re.search(words, flat)]
    for name in sorted(read.difference(*pairs)):
        if not re.search(SPOKEN[name], flat):
            yield f"the claim is about {name}, which neither title nor prose names"


def _unread(entry: str, title: str, prose: str, claim: Claim) -> Iterator[str]:
    """Yield which weights the words begin with and a claim about weights does not read."""
    names = _names(claim)
    if not names & {*PARTS, *WEIGHT_AXES}:
        return
    beginning = " ".join(prose.split("\n\n")[0].split())
    spelled = SPELLED.findall(f"{title} {beginning.partition('. ')[0]}")
    spelled += [name for product in PRODUCT.findall(beginning) for name in product]
    spelled += [f"b_{kind[0].upper()}" for kind in BIAS.findall(title)]
    for name in dict.fromkeys(spelled):
        of = {name, *(whole for whole, parts in PARTS.items() if name in parts)}
        read = bool(of & names) or PARTS.get(name, {name}) <= names
        if not read and (entry, name) not in OTHERWISE:
            yield f"the words begin with {name}, which the claim does not read"


def _names(claim: Claim) -> set[str]:
    """Return the names of symbols, without a number of one of several, and of what they are."""
    if not claim.expressions:
        return set()
    symbols = {*inspect(*claim.expressions).tensors}
    sources = {each.name for bind in getattr(claim, "bind", ()) for each in bind.values()}
    return symbols | sources | {name[:3] for name in symbols if name.startswith("W_")}


def arrays_read(claim: Claim) -> set[str]:
    """Return the arrays that a claim names or is bound to.

    Parts of an array and examples stand for any matrix of their shape.
    """
    if not claim.expressions:
        return set()
    binds = getattr(claim, "bind", ())
    found = {name for name in inspect(*claim.expressions).tensors if name in AXES}
    found -= {symbol for bind in binds for symbol in bind} | GENERIC
    whole = (
        source.name
        for bind in binds
        for source in bind.values()
        if not source.example and source.rows is None and source.cols is None
    )
    return found.union(whole) if getattr(claim, "on_models", True) else found
