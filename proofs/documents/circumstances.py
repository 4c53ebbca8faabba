"""What the text around an equation says of it: its condition, that it is to be shown or revised.

An equation that is false for free symbols is no mistake where its sentence goes on with a
condition, `… = 0$ for $i > r$`, where it says what a word such as “symmetric” means, or where a
definition is revised.
"""

from __future__ import annotations

import re

from otimes.algebra.notation.tree import Group, Name, Node, Power, Product, Sum, bare, latex, walk
from otimes.proofs.documents.false_claims import assumed
from otimes.proofs.documents.source import Document, Formula

CONDITION_AFTER = re.compile(
    r"(?:\$\$?|\\\)|\\\]|`)?[\s,]*\(?(?:"
    r"(?:whenever|when|if|unless|provided|as long as|only (?:if|when))\b"
    r"|for\s+(?:all\s+|any\s+|every\s+|each\s+)?(?:\$|\\\()[^$\n]{0,30}?"
    r"(?:[<>≠≤≥=]|\\(?:ne|neq|le|leq|ge|geq|in(?!\s*\\(?:mathbb|R\b|RR\b))|lt|gt)\b))"
)
GOAL = re.compile(
    r"\b(?:show|prove|verify|check|claim|conjecture|proof|goal|asserts?)(?: is)?(?: that)?:?\s*$",
    re.IGNORECASE,
)
REVISED = re.compile(
    r"\b(?:re-?scal\w+|scal(?:e[ds]?|ing)|divid\w+|normali[sz]\w+|instead|modif\w+|replac\w+|"
    r"generali[sz]\w+|extend\w*|redefin\w+|updat\w+|regulari[sz]\w+|augment\w*|drop\w*)\b",
    re.IGNORECASE,
)
FOLLOWS = re.compile(
    r"\b(?:we|to|you|one)\s+(?:then\s+|now\s+)?(?:get|gets|obtain)\b|\b(?:gives?|yields?|"
    r"implies|leads? to|solution|solv\w+|optimum|optimal|minimi[sz]\w+|maximi[sz]\w+)\b"
    r"|\b(?:set\w*|let)\b.{0,40}\b(?:zero|0)\b",
    re.IGNORECASE,
)
MEANING = re.compile(
    r"\b(?:symmetric|skew\w*|antisymmetric|hermitian|self-adjoint|orthogonal|orthonormal|unitary|"
    r"normal|idempotent|projections?|projectors?|involut\w+|nilpotent|singular|invertible)\b",
    re.IGNORECASE,
)
KIND = re.compile(r"\b(?:matrix|matrices|operators?|maps?)\b", re.IGNORECASE)


def has_condition_after(document: Document, formula: Formula) -> bool:
    """Return whether a sentence goes on, after a formula, with the condition under which it holds.

    >>> from otimes.proofs.documents.markdown import read_markdown
    >>> document = read_markdown("", "Then $A v = 0$ for $i > r$, and $A v = 0$ for all $v$.")
    >>> [has_condition_after(document, each) for each in document.formulas[::2]]
    [True, False]
    """
    return CONDITION_AFTER.match(document.text, formula.end) is not None


def is_goal(words: str) -> bool:
    """Return whether the words before an equation announce that it is to be shown.

    >>> is_goal("We show that "), is_goal("This shows the attention pattern ")
    (True, False)
    """
    return GOAL.search(words) is not None


def is_revised(words: str) -> bool:
    """Return whether words say that something is defined in another way from here on."""
    return REVISED.search(words) is not None


def follows_from_more(words: str) -> bool:
    """Return whether words say that an equation follows from what was said before."""
    return FOLLOWS.search(words) is not None


def says_what_a_word_means(words: str, lhs: Node, rhs: Node) -> bool:
    """Return whether an equation about one symbol says what a word such as “symmetric” means."""
    return bool(MEANING.search(words) and KIND.search(words) and assumed(lhs, rhs))


def is_of_differentials(lhs: Node, rhs: Node) -> bool:
    r"""Return whether all terms have a `d` before a matrix: `d(XY) = (dX) Y + X dY`.

    >>> from otimes.algebra.notation.parser import parse_formula
    >>> (rule,) = parse_formula("d(X Y) = (d X) Y + X d Y")
    >>> is_of_differentials(*rule.terms)
    True
    """
    terms = [*_terms(lhs), *_terms(rhs)]
    return bool(terms) and all(any(_is_differential(e) for e in walk(term)) for term in terms)


def _terms(node: Node) -> list[Node]:
    inner = bare(node)
    terms = list(inner.terms) if isinstance(inner, Sum) else [inner]
    return [term for term in terms if latex(bare(term)) not in ("0", r"\mathbf{0}")]


def _is_differential(node: Node) -> bool:
    if not isinstance(node, Product):
        return False
    return any(
        isinstance(a, Name) and latex(a) in ("d", r"\mathrm{d}") and _is_variable(b)
        for a, b in zip(node.factors, node.factors[1:], strict=False)
    )


def _is_variable(node: Node) -> bool:
    base = node.base if isinstance(node, Power) else node
    if isinstance(base, Group):
        return True
    return isinstance(base, Name) and (base.base[:1].isupper() or bool(base.style))
