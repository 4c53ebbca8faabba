"""What is taken as true and not derived: each axiom named, sourced, and stated once.

An axiom is an equation in any matrices of fitting shapes. Those of the nonlinear functions are
either built into their reading (`applied`), so that both sides have one normal form, or relations,
which `decide` adds to the hypotheses for every function that occurs in a claim. An axiom with
premises is used where they were proved. Three axioms are about linear algebra itself: what an
inverse is, and two that need finite size or real numbers (`entailment.consequences`).
`otimes axioms` lists them all, and each is tested in numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any

import sympy
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalOf

from algebra.dimensions import same_size
from algebra.functions import KNOWN
from algebra.language import OneHot, matadd, matmul
from algebra.latex import latex
from algebra.nonlinear import (
    RSQRT,
    Activation,
    CausalMask,
    LayerNorm,
    RMSNorm,
    RowSoftmax,
    definition,
)

Equation = tuple[Any, Any]
Proves = Callable[[Any, Any], bool]

PRIMER = "Ferrando, Sarti, Bisazza and Costa-jussà 2024, A primer on the inner workings, section 2"
FRAMEWORK = "Elhage et al. 2021, A mathematical framework for transformer circuits"
SOFTMAX_SOURCE = (
    "Blanchard, Higham and Higham 2021, Accurately computing the log-sum-exp and softmax functions"
)
LAYER_NORM_SOURCE = "Ba, Kiros and Hinton 2016, Layer normalization, arXiv:1607.06450"
RMS_NORM_SOURCE = "Zhang and Sennrich 2019, Root mean square layer normalization, arXiv:1910.07467"


@dataclass(frozen=True, slots=True)
class Instance:
    """An axiom said of a subject: an equation, and the premises that it was proved from.

    The subject is a function that occurs, or a pair of them; None for what is built in.
    """

    axiom: str
    lhs: Any
    rhs: Any
    premises: tuple[Equation, ...] = ()
    subject: Any = None


@dataclass(frozen=True, slots=True)
class Axiom:
    """A fact that is taken as true: `of` says it of a function that occurs in a claim.

    An axiom that is built into the reading says something of its own subject only.
    """

    name: str
    says: str
    source: str
    subject: Any
    of: Callable[[Any], Iterator[Instance]]
    built_in: bool = False

    @property
    def example(self) -> Instance:
        """The axiom in general matrices: its statement."""
        return next(self.of(self.subject))

    def to_json(self) -> dict[str, Any]:
        """Return the axiom as plain data: its name, words, source, and statement in TeX."""
        said = self.example
        return {
            "name": self.name,
            "says": self.says,
            "source": self.source,
            "tex": f"{latex(said.lhs)} = {latex(said.rhs)}",
            "premises": [f"{latex(lhs)} = {latex(rhs)}" for lhs, rhs in said.premises],
        }


_n, _m, _d = sympy.symbols("n m d", integer=True, positive=True)
_i = sympy.Symbol("i", integer=True)
_c = sympy.Symbol("c", positive=True)
_S, _X = sympy.MatrixSymbol("S", _n, _m), sympy.MatrixSymbol("X", _n, _d)
_v, _P = sympy.MatrixSymbol("v", _n, 1), sympy.MatrixSymbol("P", _m, _n)
_w = sympy.MatrixSymbol("w", _m, 1)
_Q, _E, _F = (sympy.MatrixSymbol(name, _m, _m) for name in "QEF")

AXIOMS: dict[str, Axiom] = {}
MAX_FUNCTIONS = 60  # in one claim, with those that axioms bring in


def _built_in(name: str, says: str, source: str, lhs: Any, rhs: Any, *premises: Equation) -> None:
    def instances(e: Any) -> Iterator[Instance]:
        yield Instance(name, lhs, rhs, premises)

    AXIOMS[name] = Axiom(name, says, source, lhs, instances, built_in=True)


def _relation(
    name: str, says: str, source: str, subject: Any
) -> Callable[[Callable[[Any], Iterator[tuple[Any, ...]]]], None]:
    """Declare an axiom by what it says of a function that occurs: (lhs, rhs, premise, …)."""

    def declare(says_of: Callable[[Any], Iterator[tuple[Any, ...]]]) -> None:
        def instances(e: Any) -> Iterator[Instance]:
            for lhs, rhs, *premises in says_of(e):
                yield Instance(name, lhs, rhs, tuple(premises), e)

        AXIOMS[name] = Axiom(name, says, source, subject, instances)

    return declare


def _ones(rows: Any, cols: Any) -> Any:
    return sympy.OneMatrix(rows, cols)


def _same_shape(e: Any, f: Any) -> bool:
    return all(map(same_size, e.shape, f.shape))


def _square(e: Any) -> Any:
    return sympy.HadamardPower(e, 2)


# -- linear algebra --------------------------------------------------------------------------------

_built_in(
    "inverse",
    "a matrix times its inverse is the identity, on both sides",
    "the meaning of an inverse, where there is one",
    matmul(_E, sympy.Inverse(_E)),
    sympy.Identity(_m),
)
_built_in(
    "inverse_of_square",
    "a one-sided inverse of a square matrix is two-sided",
    "an injective map of a space of finite dimension to itself is onto",
    matmul(_F, _E),
    sympy.Identity(_m),
    (matmul(_E, _F), sympy.Identity(_m)),
)
_built_in(
    "gram_zero",
    "a real matrix whose Gram matrix is zero is zero",
    "the trace of XᵀX is the sum of the squares of the entries of X",
    _X,
    sympy.ZeroMatrix(_n, _d),
    (matmul(sympy.Transpose(_X), _X), sympy.ZeroMatrix(_d, _d)),
)

# -- functions: built into the reading -------------------------------------------------------------

_built_in(
    "softmax_shift",
    "adding a constant to a row does not change its softmax",
    SOFTMAX_SOURCE,
    RowSoftmax(matadd(_S, matmul(_v, _ones(1, _m)))),
    RowSoftmax(_S),
)
_built_in(
    "softmax_constant",
    "the softmax of a row of equal numbers is the mean",
    SOFTMAX_SOURCE,
    RowSoftmax(matmul(_v, _ones(1, _m))),
    matmul(1 / _m, _ones(_n, _m)),
)
_built_in(
    "softmax_unseen_columns",
    "columns that a mask leaves out take no part in a softmax",
    "Vaswani et al. 2017, Attention is all you need, section 3.2.3",
    RowSoftmax(
        sympy.BlockMatrix([[_S, sympy.MatrixSymbol("T", _n, _d)]]),
        sympy.BlockMatrix([[sympy.MatrixSymbol("M", _n, _m), sympy.ZeroMatrix(_n, _d)]]),
    ),
    sympy.BlockMatrix(
        [[RowSoftmax(_S, sympy.MatrixSymbol("M", _n, _m)), sympy.ZeroMatrix(_n, _d)]]
    ),
)
_built_in(
    "softmax_row",
    "a row of a softmax is the softmax of that row",
    PRIMER,
    matmul(OneHot(_i, _n).T, RowSoftmax(_S)),
    RowSoftmax(matmul(OneHot(_i, _n).T, _S)),
)
_built_in(
    "activation_row",
    "a row of an activation is the activation of that row",
    PRIMER,
    matmul(OneHot(_i, _n).T, Activation("g", _S)),
    Activation("g", matmul(OneHot(_i, _n).T, _S)),
)
_built_in(
    "activation_repeat",
    "the activation of repeated columns is repeated",
    PRIMER,
    Activation("g", matmul(_v, _ones(1, _m))),
    matmul(Activation("g", _v), _ones(1, _m)),
)
_built_in(
    "activation_zero",
    "relu, gelu, silu and tanh of zero are zero; exp of zero is one",
    "their definitions",
    Activation("relu", sympy.ZeroMatrix(_n, _m)),
    sympy.ZeroMatrix(_n, _m),
)
_built_in(
    "relu_scale",
    "a positive factor passes through relu",
    "its definition",
    Activation("relu", matmul(_c, _S)),
    matmul(_c, Activation("relu", _S)),
)
_built_in(
    "rms_norm_definition",
    "RMSNorm scales each row by the reciprocal root of its mean square",
    RMS_NORM_SOURCE,
    RMSNorm(_X, sympy.Symbol("epsilon", positive=True)),
    definition(RMSNorm(_X, sympy.Symbol("epsilon", positive=True))),
)
_built_in(
    "layer_norm_definition",
    "LayerNorm is RMSNorm after centring",
    LAYER_NORM_SOURCE,
    LayerNorm(_X, sympy.Symbol("epsilon", positive=True)),
    definition(LayerNorm(_X, sympy.Symbol("epsilon", positive=True))),
)
_built_in(
    "norm_scale",
    "without eps, a positive factor does not change a norm",
    RMS_NORM_SOURCE,
    RMSNorm(matmul(_c, _X)),
    RMSNorm(_X),
)

# -- functions: relations --------------------------------------------------------------------------


@_relation(
    "softmax_sum",
    "each row of a softmax sums to one",
    FRAMEWORK + ", attention heads are independent and additive",
    RowSoftmax(_S),
)
def _(e: Any) -> Iterator[tuple[Any, ...]]:
    if isinstance(e, RowSoftmax):
        rows, cols = e.shape
        yield matmul(e, _ones(cols, 1)), _ones(rows, 1)


@_relation(
    "softmax_mask",
    "what a mask leaves out has no weight",
    "Vaswani et al. 2017, Attention is all you need, section 3.2.3",
    RowSoftmax(_S, sympy.MatrixSymbol("M", _n, _m)),
)
def _(e: Any) -> Iterator[tuple[Any, ...]]:
    if isinstance(e, RowSoftmax) and e.mask is not None:
        zero_or_one = (sympy.HadamardProduct(e.mask, e.mask, evaluate=False), e.mask)
        yield sympy.HadamardProduct(e, e.mask, evaluate=False), e, zero_or_one


@_relation(
    "softmax_exp",
    "the weights of a softmax are exp of the scores over the sum of their row",
    SOFTMAX_SOURCE,
    (RowSoftmax(_S), Activation("exp", _S)),
)
def _(pair: Any) -> Iterator[tuple[Any, ...]]:
    for weights, e in permutations(pair) if isinstance(pair, tuple) else ():
        is_exp = isinstance(e, Activation) and e.name == "exp"
        if is_exp and isinstance(weights, RowSoftmax) and _same_shape(weights, e):
            shown = e if weights.mask is None else sympy.HadamardProduct(e, weights.mask)
            total = matmul(shown, _ones(e.shape[1], e.shape[1]))
            yield sympy.HadamardProduct(RowSoftmax(e.argument, *weights.args[1:]), total), shown


@_relation("causal_mask_is_mask", "the causal mask is zero or one", FRAMEWORK, CausalMask(_n))
def _(e: Any) -> Iterator[tuple[Any, ...]]:
    if isinstance(e, CausalMask):
        yield sympy.HadamardProduct(e, e, evaluate=False), e


@_relation("causal_mask_diagonal", "a position sees itself", FRAMEWORK, CausalMask(_n))
def _(e: Any) -> Iterator[tuple[Any, ...]]:
    if isinstance(e, CausalMask):
        yield DiagonalOf(e), _ones(e.shape[0], 1)


@_relation(
    "causal_mask_order",
    "of two positions exactly one sees the other",
    FRAMEWORK,
    CausalMask(_n),
)
def _(e: Any) -> Iterator[tuple[Any, ...]]:
    if isinstance(e, CausalMask):
        yield matadd(e, sympy.Transpose(e)), matadd(_ones(*e.shape), sympy.Identity(e.shape[0]))


@_relation(
    "activation_transpose",
    "an activation does not mind where an entry stands",
    PRIMER,
    Activation("g", _S),
)
def _(e: Any) -> Iterator[tuple[Any, ...]]:
    if isinstance(e, Activation):  # which the reading knows, but for a symmetric argument
        yield Activation(e.name, sympy.Transpose(e.argument)), sympy.Transpose(e)


@_relation(
    "activation_reflected",
    "relu, gelu and silu: g(x) - g(-x) = x",
    "their definitions: x times a function s with s(x) + s(-x) = 1",
    Activation("gelu", _X),
)
def _(e: Any) -> Iterator[tuple[Any, ...]]:
    if _reflection(e) == "identity":
        turned = Activation(e.name, matmul(-1, e.argument))
        yield matadd(e, matmul(-1, turned)), e.argument


@_relation(
    "activation_odd", "tanh: g(-x) = -g(x)", "the hyperbolic tangent", Activation("tanh", _X)
)
def _(e: Any) -> Iterator[tuple[Any, ...]]:
    if _reflection(e) == "odd":
        yield Activation(e.name, matmul(-1, e.argument)), matmul(-1, e)


@_relation(
    "sigmoid_reflected",
    "sigmoid: g(x) + g(-x) = 1",
    "the logistic function",
    Activation("sigmoid", _X),
)
def _(e: Any) -> Iterator[tuple[Any, ...]]:
    if _reflection(e) == "one":
        yield matadd(e, Activation(e.name, matmul(-1, e.argument))), _ones(*e.shape)


@_relation("exp_reflected", "exp(x) exp(-x) = 1", "the exponential function", Activation("exp", _X))
def _(e: Any) -> Iterator[tuple[Any, ...]]:
    if _reflection(e) == "inverse":
        turned = Activation(e.name, matmul(-1, e.argument))
        yield sympy.HadamardProduct(e, turned, evaluate=False), _ones(*e.shape)


@_relation(
    "relu_idempotent",
    "relu of relu is relu",
    "its definition",
    Activation("relu", Activation("relu", _X)),
)
def _(e: Any) -> Iterator[tuple[Any, ...]]:
    if isinstance(e, Activation) and e.name == "relu":
        inner = e.argument
        if isinstance(inner, Activation) and inner.name == "relu":
            yield e, inner


@_relation(
    "relu_parts",
    "relu of a number or of its negative is zero",
    "its definition",
    Activation("relu", _X),
)
def _(e: Any) -> Iterator[tuple[Any, ...]]:
    if isinstance(e, Activation) and e.name == "relu":
        turned = Activation("relu", matmul(-1, e.argument))
        yield sympy.HadamardProduct(e, turned, evaluate=False), sympy.ZeroMatrix(*e.shape)


@_relation(
    "relu_scale_columns",
    "factors that are squares, one for each column, pass through relu",
    "its definition",
    Activation("relu", matmul(_S, DiagMatrix(_square(_w)))),
)
def _(e: Any) -> Iterator[tuple[Any, ...]]:
    factors = _factors(e)
    if factors and isinstance(e, Activation) and e.name == "relu" and _is_squares(factors[-1]):
        yield e, matmul(Activation("relu", _product(factors[:-1])), factors[-1])


@_relation(
    "rsqrt_square",
    "the square of the reciprocal root of x, times x, is one",
    "its definition",
    Activation(RSQRT, _v),
)
def _(e: Any) -> Iterator[tuple[Any, ...]]:
    if isinstance(e, Activation) and e.name == RSQRT:
        yield sympy.HadamardProduct(_square(e), e.argument, evaluate=False), _ones(*e.shape)


@_relation(
    "function_choose_rows",
    "a function of each row commutes with choosing rows: P of zeros and ones, a one in each row",
    PRIMER,
    RowSoftmax(matmul(_P, _S)),
)
def _(e: Any) -> Iterator[tuple[Any, ...]]:
    factors = _factors(e)
    if factors:
        chosen, rest = factors[0], _product(factors[1:])
        yield e, matmul(chosen, _applied_to(e, rest)), *_chooses(chosen)


@_relation(
    "activation_choose_columns",
    "an activation commutes with choosing columns: Qᵀ of zeros and ones, a one in each row",
    PRIMER,
    Activation("g", matmul(_S, _Q)),
)
def _(e: Any) -> Iterator[tuple[Any, ...]]:
    factors = _factors(e)
    if factors and isinstance(e, Activation):
        chosen, rest = factors[-1], _product(factors[:-1])
        yield e, matmul(_applied_to(e, rest), chosen), *_chooses(sympy.Transpose(chosen))


@_relation(
    "softmax_permute_columns",
    "the softmax of permuted scores is permuted: Q of zeros and ones, one in each row and column",
    PRIMER,
    RowSoftmax(matmul(_S, _Q)),
)
def _(e: Any) -> Iterator[tuple[Any, ...]]:
    factors = _factors(e)
    if factors and isinstance(e, RowSoftmax) and same_size(*factors[-1].shape):
        chosen, rest = factors[-1], _product(factors[:-1])
        premises = (*_chooses(chosen), _chooses(sympy.Transpose(chosen))[1])
        yield e, matmul(_applied_to(e, rest), chosen), *premises


@_relation(
    "function_congruence",
    "a function of equal arguments is equal, where hypotheses say that they are",
    "the meaning of a function",
    (RowSoftmax(_S), RowSoftmax(sympy.MatrixSymbol("T", _n, _m))),
)
def _(pair: Any) -> Iterator[tuple[Any, ...]]:
    if isinstance(pair, tuple):
        e, f = pair
        mine, theirs = _matrices(e), _matrices(f)
        alike = type(e) is type(f) and _parameters(e) == _parameters(f)
        if alike and len(mine) == len(theirs) and _same_shape(e, f):
            yield e, f, *zip(mine, theirs, strict=True)


# -- what a claim needs ----------------------------------------------------------------------------


def instances(expressions: Sequence[Any], proves: Proves) -> list[Instance]:
    """Return what the axioms say of the functions in some expressions, their premises proved.

    `proves` says whether an equation certainly holds. It is asked about parts of the expressions
    only, so asking it to use axioms itself comes to an end.
    """
    nodes = list(dict.fromkeys(node for e in expressions for node in functions_in(e)))
    stated = set(nodes)
    found = []
    for node in nodes:  # which grows: what is left when rows were chosen is a function too
        for instance in _said_of(node, proves):
            if instance.axiom == "rsqrt_square" and node not in stated:
                continue  # its argument may be zero where nothing that is stated takes its root
            found.append(instance)
            if instance.premises and len(nodes) < MAX_FUNCTIONS:
                nodes += [f for f in functions_in(instance.rhs) if f not in nodes]
    roots = [e for e in nodes if isinstance(e, Activation) and e.name == RSQRT]
    pairs = [*combinations(nodes, 2), *[(e, Activation(RSQRT, _ones(*e.shape))) for e in roots]]
    return found + [instance for pair in pairs for instance in _said_of(pair, proves)]


def _said_of(subject: Any, proves: Proves) -> Iterator[Instance]:
    for axiom in AXIOMS.values():
        for instance in () if axiom.built_in else axiom.of(subject):
            if all(proves(*premise) for premise in instance.premises):
                yield instance


def functions_in(e: Any) -> Iterator[Any]:
    """Yield the nonlinear functions in an expression, those that a norm is made of among them."""
    for node in sympy.preorder_traversal(e):
        if isinstance(node, RowSoftmax | CausalMask | Activation):
            yield node
        elif isinstance(node, RMSNorm | LayerNorm):
            yield node
            yield from functions_in(definition(node))


def _reflection(e: Any) -> str | None:
    if not isinstance(e, Activation) or e.name not in KNOWN:
        return None
    return KNOWN[e.name].reflected


def _factors(e: Any) -> tuple[Any, ...]:
    """Return the factors of the argument of a function without mask, none if it is no product."""
    if isinstance(e, CausalMask | tuple) or (isinstance(e, RowSoftmax) and e.mask is not None):
        return ()
    argument = _matrices(e)[0]
    is_product = isinstance(argument, sympy.MatMul) and all(a.is_Matrix for a in argument.args)
    return tuple(argument.args) if is_product and len(argument.args) > 1 else ()


def _is_squares(e: Any) -> bool:
    """Return whether a factor is a diagonal of squares, as it is written: diag(w ∘ w)."""
    return (
        isinstance(e, DiagMatrix)
        and isinstance(e.args[0], sympy.HadamardPower)
        and e.args[0].args[1] == 2
    )


def _product(factors: tuple[Any, ...]) -> Any:
    return factors[0] if len(factors) == 1 else matmul(*factors)


def _matrices(e: Any) -> tuple[Any, ...]:
    return tuple(a for a in e.args if getattr(a, "is_Matrix", False))


def _parameters(e: Any) -> tuple[Any, ...]:
    """Return what a function has besides matrices: its name, or the eps of a norm."""
    return tuple(a for a in e.args if not getattr(a, "is_Matrix", False))


def _applied_to(e: Any, argument: Any) -> Any:
    """Return the same function of another argument."""
    if isinstance(e, Activation):
        return Activation(e.name, argument)
    return type(e)(argument, *e.args[1:])


def _chooses(chosen: Any) -> tuple[Equation, Equation]:
    """Return what says that each row of a matrix is zero but for a single one."""
    rows, cols = chosen.shape
    squared = sympy.HadamardProduct(chosen, chosen, evaluate=False)
    return (squared, chosen), (matmul(chosen, _ones(cols, 1)), _ones(rows, 1))
