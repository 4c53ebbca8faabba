"""Small pieces of Markdown: tables, numbers, code, and the words for names."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

# Descriptions of the weights and activations of a model.
ARRAYS = {
    "W_E": "embedding",
    "W_U": "unembedding",
    "W_pos": "position vectors",
    "W_Q": "query weights",
    "W_K": "key weights",
    "W_V": "value weights",
    "W_O": "output weights",
    "W_in": "weights into the MLP",
    "W_gate": "weights of the MLP's gate",
    "W_out": "weights out of the MLP",
    "b_Q": "query bias",
    "b_K": "key bias",
    "b_V": "value bias",
    "b_O": "output bias",
    "b_in": "bias into the MLP",
    "b_gate": "bias of the MLP's gate",
    "b_out": "bias out of the MLP",
    "b_U": "unembedding bias",
    "ln1_gain": "gain of the norm before attention",
    "ln1_bias": "bias of the norm before attention",
    "ln2_gain": "gain of the norm before the MLP",
    "ln2_bias": "bias of the norm before the MLP",
    "ln_final_gain": "gain of the final norm",
    "ln_final_bias": "bias of the final norm",
    "one_hot": "tokens, each row one-hot",
    "embed": "embedded tokens",
    "resid_pre": "residual stream that a layer reads",
    "ln1": "residual stream as attention reads it, after its norm",
    "qk_in": "what queries and keys read",
    "q": "queries",
    "k": "keys",
    "v": "values",
    "scores": "attention scores, divided by $\\sqrt{d_h}$ and not yet masked",
    "pattern": "attention pattern",
    "z": "values mixed by the pattern",
    "head_out": "what a head writes",
    "attn_out": "what an attention layer writes",
    "resid_mid": "residual stream after attention",
    "ln2": "residual stream as the MLP reads it, after its norm",
    "mlp_pre": "what the MLP's activation is applied to",
    "mlp_post": "what the MLP's neurons give",
    "mlp_out": "what the MLP writes",
    "resid_post": "residual stream that a layer leaves",
    "final": "residual stream that is unembedded, before its norm if it has one",
    "ln_final": "residual stream that is unembedded, after its norm",
    "logits": "logits",
    "rotation": "the matrix that turns queries and keys at each position",
    "grouped_W_V": "value weights, one for each group of heads",
    "grouped_W_O": "output weights, for each head of each group",
    "grouped_pattern": "attention pattern, of each head of each group",
}

# Descriptions of the symbols of sizes and indices in statements about transformers.
SIZES = {
    "n": "positions",
    "m": "positions",
    "d": "residual stream",
    "d_model": "residual stream",
    "d_head": "one head",
    "d_vocab": "vocabulary",
    "d_mlp": "neurons of an MLP",
    "V": "vocabulary",
    "H": "heads in a layer",
    "L": "layers",
}

RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def table(head: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> str:
    """Return a Markdown table; the columns in `right` hold numbers and are set flush right."""
    flush = set(right)
    rule = ["--:" if column in flush else "---" for column in range(len(head))]
    lines = [head, rule, *rows]
    return "\n".join("| " + " | ".join(cell or " " for cell in line) + " |" for line in lines)


def code(text: str) -> str:
    """Return text as code, whatever backticks and bars it holds."""
    text = " ".join(text.split()).replace("|", "\\|")
    fence = "``" if "`" in text else "`"
    return f"{fence} {text} {fence}" if "`" in text else f"{fence}{text}{fence}"


def block(text: str) -> str:
    """Return text as a code block, lines kept."""
    return "\n".join(["```text", text.rstrip(), "```"])


def figure(number: float) -> str:
    """Return a measured number with two digits.

    >>> figure(0.1149), figure(3.14e-14), figure(0.0), figure(float("inf"))
    ('0.11', '3.1 × 10⁻¹⁴', '0', '∞')
    """
    if math.isnan(number):
        return "not a number"
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    if number == 0:
        return "0"
    if 0.01 <= abs(number) < 100:
        return f"{number:.2f}"
    mantissa, exponent = f"{number:.1e}".split("e")
    return f"{mantissa} × 10{str(int(exponent)).translate(RAISED)}"


def count(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> count(1, "theorem"), count(12, "theorem")
    ('1 theorem', '12 theorems')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
