"""Identities of activations with irrational numbers, and the slips that papers and code make."""

from __future__ import annotations

SHAPES = "X: n d, Y: n d, a: positive"
J = "𝟏_{n} 𝟏_{d}ᵀ"
INNER = "X + (44715/1000000) X ⊙ X ⊙ X"

TRUE: tuple[tuple[str, str], ...] = (
    ("gelu(X)", f"(1/2) X ⊙ ({J} + erf((1/√2) X))"),
    ("gelu_tanh(X)", f"(1/2) X ⊙ ({J} + tanh(√(2/π) ({INNER})))"),
    ("gelu_tanh(X)", f"X ⊙ sigmoid(2 √(2/π) ({INNER}))"),
    ("silu(X)", "X ⊙ sigmoid(X)"),
    ("softplus(X)", f"log({J} + exp(X))"),
    ("softplus(X) - softplus(-X)", "X"),
    ("tanh(X)", f"2 sigmoid(2 X) - {J}"),
    ("sigmoid(-X)", f"{J} - sigmoid(X)"),
    ("erf(-X)", "-erf(X)"),
    ("gelu(X) - gelu(-X)", "X"),
    ("silu(X) - silu(-X)", "X"),
    ("exp(X + Y)", "exp(X) ⊙ exp(Y)"),
    ("√(2/π) X", "(√2/√π) X"),
    ("√(2/π) X", "2 (1/√(2 π)) X"),
    ("√(π a) X", "√π √a X"),
    ("sin(X + π 𝟏_{n} 𝟏_{d}ᵀ)", "-sin(X)"),
)

SLIPS: tuple[tuple[str, str], ...] = (
    ("1/√2", "√2"), ("1/√2", "1/2"), ("√(2/π)", "√(π/2)"), ("√(2/π)", "√(1/π)"),
    ("√(2/π)", "(2/π)"), ("√(2/π)", "√2"), ("√(2/π)", "(797/1000)"),
    ("√(2/π)", "(7978845/10000000)"),
    ("44715/1000000", "44715/100000"), ("44715/1000000", "4475/100000"),
    ("X ⊙ X ⊙ X", "X ⊙ X"), ("(1/2) X", "X"), ("erf(", "tanh("), (" + tanh(", " + erf("),
    (" + tanh(", " + sigmoid("),
    ("sigmoid(2 ", "sigmoid("), ("sigmoid(X)", "sigmoid(-X)"), ("sigmoid(X)", "tanh(X)"),
    ("2 sigmoid", "sigmoid"), (" + erf", " - erf"), (" + tanh", " - tanh"), (f"{J} + ", ""),
    (f" - {J}", ""), (f"{J} - ", ""), ("exp(X) ⊙ exp(Y)", "exp(X) + exp(Y)"), ("log(", "exp("),
    ("-erf(X)", "erf(X)"), ("-sin(X)", "sin(X)"), ("exp(X)", "exp(-X)"), ("√(2 π)", "√π"),
    ("√2/√π", "2/√π"), ("√π √a", "π √a"), ("√π √a", "√a"), (" - gelu(-X)", " + gelu(-X)"),
    (" - softplus(-X)", " + softplus(-X)"), (" - silu(-X)", ""), ("π 𝟏_{n}", "2 π 𝟏_{n}"),
)  # fmt: skip


def slipped() -> list[tuple[str, str]]:
    """Return the identities with one slip on the side where it can be made."""
    found = []
    for left, right in TRUE:
        for true, false in SLIPS:
            sides = (right.replace(true, false, 1), left.replace(true, false, 1))
            found += [(left, sides[0])] * (sides[0] != right)
            found += [(sides[1], right)] * (sides[1] != left)
    return found
