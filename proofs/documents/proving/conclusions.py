"""Equations that a text concludes from what it has stated: false at numbers that satisfy all of it.

An equation such as `U Uᵀ = I` may be an assumption. It is a conclusion after “then” or “hence”, and
where it is about symbols that the text defines by others, of which it has stated hypotheses.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from otimes.algebra.errors import OtimesError
from otimes.algebra.notation.elaborate import elaborate
from otimes.algebra.notation.symbols import Symbols
from otimes.algebra.notation.tree import Node, Statement
from otimes.proofs.documents.proving.attempts import attempted
from otimes.proofs.documents.reporting.found import Found
from otimes.proofs.documents.symbols.hypotheses import Hypothesis

CONCLUDES = re.compile(
    r"\b(?:then|hence|thus|therefore|consequently|it follows that|this implies(?: that)?"
    r"|we conclude(?: that)?)\s*[,:]?\s*$",
    re.IGNORECASE,
)
MORE = re.compile(
    r"\b(?:square|invertible|non-?singular|regular|unitary|full|ranks?|bijective|permutations?|unit|"
    r"orthonormal\w*|eigen\w+|null ?space|kernel|stochastic|idempotent|projections?|projectors?|"
    r"skew\w*|small|fixed|normali[sz]ed|cent(?:er|re)d|whitened|one-hot|independent|diagonal|"
    r"only if|rotations?|approximat\w+|special case|stationary|optim\w+|minimi[sz]\w+|when|unless|"
    r"symmetric|commut\w+|orthogonal\w*|hermitian|self-adjoint|nilpotent|involut\w+|triangular|"
    r"invers\w+|causal|lower|upper|traceless|constant|zero|vanish\w*|generat\w+|bas[ie]s|spans?|"
    r"equal|same|moreover|also|further\w*|addition\w*|positive|negative|definite|generic|almost)\b",
    re.IGNORECASE,
)


# Words after which an equation is solved for a symbol, or holds for some of its values.
SOLVED = re.compile(
    r"\b(?:optim\w+|minimi[sz]\w+|maximi[sz]\w+|eigen\w+|null ?space|kernel|such that|satisf\w+|"
    r"special case|stationary|if|when\w*|unless|suppose|assum\w+)\b",
    re.IGNORECASE,
)


def is_concluded(words: str) -> bool:
    """Return whether the words before an equation announce a conclusion.

    >>> is_concluded("Let U have orthonormal columns. Then "), is_concluded("so that then the ")
    (True, False)
    """
    return CONCLUDES.search(words.rstrip("$ \n\\[(")) is not None


def is_solved(words: str) -> bool:
    """Return whether words say that an equation holds for some values of its symbols only."""
    return SOLVED.search(words) is not None


def says_more(words: str) -> bool:
    """Return whether the words around an equation may assume more than formulas state."""
    return MORE.search(words) is not None


def equations_in(statements: Sequence[Statement]) -> list[tuple[Node, Node]] | None:
    """Return the equations that are stated, or None if something else is, besides shapes."""
    found: list[tuple[Node, Node]] = []
    for each in statements:
        if not {*each.relations} <= {"=", r"\in"}:
            return None
        if {*each.relations} == {"="}:
            found += pairwise(each.terms)
    return found


def refuted_by(
    left: Node, right: Node, given: Sequence[Hypothesis], symbols: Symbols
) -> Found | None:
    """Return the refutation of an equation by numbers that satisfy hypotheses, or None."""
    try:
        read = elaborate([left, right], symbols)
    except OtimesError:
        return None
    verdict, reading = attempted(left, right, given, symbols)
    if verdict is None or verdict.status != "refuted" or read.undeclared or read.doubts:
        return None
    said = "; ".join(dict.fromkeys(map(str, given)))
    why = "the sides differ at exact numbers" + (f" that satisfy {said}" if said else "")
    return Found("refuted", why, verdict.counterexample, reading=reading)
