"""The axioms, which are assumed and not derived: each named, sourced, and stated once.

The statements are data: `axioms.json`, which `otimes axioms` prints and `proofs/replay.py` checks
proofs by. An axiom is an equation for all matrices of matching shapes. A *reading* is built into
the normal form (`reading.opaque_functions`), which is then equal for both sides; the others are
relations, which `decide` adds to the hypotheses for every function in a claim. An axiom with
premises is used only if they are proved. Three axioms are of linear algebra: the definition of an
inverse, and two that need finite dimension or real numbers (`entailment.consequences`). Each is
tested numerically.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any

import sympy

from otimes.algebra.decide.axiom_statements import (
    DATA,
    STATEMENTS,
    Axiom,
    Equation,
    Instance,
    example,
)
from otimes.algebra.decide.axiom_subjects import subjects_of
from otimes.algebra.decide.function_parts import (
    CONSTANTS,
    functions_in,
    is_applied,
    matrix_arguments,
)
from otimes.algebra.decide.signs import SignsIn
from otimes.algebra.language.constants import PI
from otimes.algebra.language.linear import as_product, matmul
from otimes.algebra.language.nonlinear import (
    RSQRT,
    Activation,
    CausalMask,
    RowSoftmax,
)
from otimes.algebra.language.positions import OneHotLast
from otimes.algebra.language.trees import parts_of, rebuilt

Proves = Callable[[Any, Any], bool]
AXIOMS = {
    name: Axiom(name, one["says"], one["source"], example(name), *subjects_of(name))
    for name, one in STATEMENTS.items()
}
OF_POWERS = "shift_power"  # about products over layers, which are read as matrices only
MAX_FACTORS, MAX_PRODUCTS = 4, 4  # of products of causal matrices
MAX_FUNCTIONS = 60  # in one claim, including those from axioms


def instances(
    expressions: Sequence[Any],
    proves: Proves,
    signs: SignsIn | None = None,
    given: Sequence[Equation] = (),
) -> list[Instance]:
    """Return the instances of the axioms for the functions in expressions, with proved premises.

    `proves` decides whether an equation holds. It is called for subexpressions only, so the
    recursion ends if it uses axioms itself. `signs` tells which arguments are positive. Functions
    of an argument that is simpler by a hypothesis `given` are taken into account.
    """
    signs = signs or SignsIn(expressions)
    nodes = list(dict.fromkeys(node for e in expressions for node in functions_in(e)))
    nodes += [e for e in map(_without_number, nodes) if e is not None and e not in nodes]
    nodes += [e for e in dict.fromkeys(_of_what_is_given(given)) if e not in nodes]
    stated = set(nodes)
    related = {
        "softmax_quotient": any(is_applied(e, "reciprocal") for e in nodes),
        "gelu_erf": any(is_applied(e, "erf") for e in nodes),
        "gelu_tanh": any(e.has(PI) for e in expressions),
        "sigmoid_difference": any(is_applied(e, "exp") for e in nodes),
        "softplus_difference": any(is_applied(e, "log") for e in nodes),
        OF_POWERS: False,
        "causal_softmax_last": any(isinstance(e, OneHotLast) for e in nodes),
    }
    found = []
    for node in nodes:  # the list grows: a function after a selection of rows is added
        for instance in _said_of(node, proves, signs):
            if instance.axiom == "rsqrt_square" and node not in stated:
                continue  # its argument may be zero, unless the claim takes its root
            if instance.axiom in OF_SUMMANDS and not OF_SUMMANDS[instance.axiom](instance) & stated:
                continue  # no function of a summand is in question
            if not related.get(instance.axiom, True):
                continue  # it is about a function that the claim does not have
            found.append(instance)
            if len(nodes) < MAX_FUNCTIONS:
                nodes += [f for f in dict.fromkeys(functions_in(instance.rhs)) if f not in nodes]
        if len(nodes) < MAX_FUNCTIONS:
            simpler = dict.fromkeys(_with_simpler_arguments(node, given))
            nodes += [f for f in simpler if f not in nodes]
    roots = [e for e in nodes if isinstance(e, Activation) and e.name == RSQRT]
    divides = any(is_applied(e, "reciprocal") or is_applied(e, "log") for e in nodes)
    weights = [e for e in nodes if divides and isinstance(e, RowSoftmax)]
    pairs = [
        *combinations(nodes, 2),
        *[(e, exp) for e in weights if (exp := Activation("exp", e.args[0])) not in stated],
        *[(e, Activation(RSQRT, sympy.OneMatrix(*e.shape))) for e in roots],
        *_weights_in_blocks(nodes),
        *_products_under_masks(expressions),
    ]
    return found + [instance for pair in pairs for instance in _said_of(pair, proves, signs)]


def _of_what_is_given(given: Sequence[Equation]) -> Iterator[Any]:
    """Yield the logarithms of softmaxes that are said to be equal, and reciprocals of factors.

    What is multiplied by a positive function on both sides can be divided by it.
    """
    for pair in given:
        if all(isinstance(side, RowSoftmax) and side.mask is None for side in pair):
            yield from (Activation("log", side) for side in pair)
        products = [part for side in pair for part in parts_of(side, sympy.HadamardProduct)]
        for factor in [factor for product in products for factor in product.args]:
            if isinstance(factor, RowSoftmax) or is_applied(factor, "sigmoid"):
                yield Activation("reciprocal", factor)


def _with_simpler_arguments(e: Any, given: Sequence[Equation]) -> Iterator[Any]:
    """Yield a function of X for one of exp(log(X)), and what hypotheses make of its arguments.

    Whether these are equal is a premise of `function_congruence`.
    """
    if isinstance(e, CONSTANTS):
        return
    inner = [f for part in matrix_arguments(e) for f in parts_of(part, Activation)]
    for f in inner:
        if isinstance(f.argument, Activation) and (f.name, f.argument.name) in UNDONE:
            yield e.xreplace({f: f.argument.argument})
    for pair in given:
        less, more = sorted(pair, key=lambda side: sum(1 for _ in sympy.preorder_traversal(side)))
        if not less.is_Matrix or more == less:
            continue
        if any(part.has(more) for part in matrix_arguments(e)):
            yield rebuilt(e, [arg.xreplace({more: less}) for arg in e.args])
        if isinstance(e, RowSoftmax) and e.args[0] == less and isinstance(more, sympy.MatAdd):
            yield rebuilt(e, [more, *e.args[1:]])  # less what is constant along its rows


OF_SUMMANDS: dict[str, Callable[[Instance], set[Any]]] = {
    "softmax_product": lambda said: {RowSoftmax(part) for part in said.values.values()},
    "tanh_sum": lambda said: {Activation("tanh", part) for part in said.values.values()},
}
"""The axioms about a function of a sum that are used where it is taken of a summand, too."""
UNDONE = (("exp", "log"), ("log", "exp"), ("reciprocal", "reciprocal"))


def _without_number(e: Any) -> Any:
    """Return relu(X) for relu(c X), as which it is read, and likewise other functions, or None."""
    if not isinstance(e, Activation) or e.name not in DATA["degrees"]:
        return None
    argument = e.argument
    if not isinstance(argument, sympy.MatMul) or argument.args[0].is_Matrix:
        return None
    return Activation(e.name, as_product([part for part in argument.args if part.is_Matrix]))


def _weights_in_blocks(nodes: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield pairs (softmax of block scores, exp of these), if exp of one block occurs."""
    exps = [e.argument for e in nodes if is_applied(e, "exp")]
    for e in nodes:
        scores = e.args[0] if isinstance(e, RowSoftmax) else None
        if isinstance(scores, sympy.BlockMatrix) and scores not in exps:
            yield from [(e, Activation("exp", scores))] if {*scores.blocks} & {*exps} else []


def _products_under_masks(expressions: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield the causal masks of elementwise products, each with products of few matrices.

    Under a transposed mask the products are transposed.
    """
    parts = list(dict.fromkeys(e for one in expressions for e in sympy.preorder_traversal(one)))
    known = dict.fromkeys(m for e in parts if isinstance(e, sympy.HadamardProduct) for m in e.args)
    products = [run for e in parts if 1 < len(run := _run(e)) <= MAX_FACTORS] if known else []
    for mask in known:
        turned = isinstance(mask, sympy.Transpose)
        whole = mask.args[0] if turned else mask
        for run in products[:MAX_PRODUCTS] if isinstance(whole, CausalMask) else ():
            yield whole, matmul(*[sympy.Transpose(e) for e in run[::-1]] if turned else run)


def _run(e: Any) -> Sequence[Any]:
    """Return the factors of a product or of a power of a matrix."""
    if isinstance(e, sympy.MatPow) and e.exp.is_Integer and 1 < e.exp <= MAX_FACTORS:
        return [e.base] * int(e.exp)
    return matrix_arguments(e) if isinstance(e, sympy.MatMul) else ()


def _said_of(subject: Any, proves: Proves, signs: SignsIn) -> Iterator[Instance]:
    for axiom in AXIOMS.values():
        for instance in axiom.of(subject):
            if all(signs.has(*each) for each in instance.signs) and all(
                proves(*premise) for premise in instance.premises
            ):
                yield instance
