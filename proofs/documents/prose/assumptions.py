r"""The words before a formula: whether it is assumed, and for how much of the text it counts.

>>> assumes(r"Let $U \in \mathbb{R}^{d \times r}$ with "), assumes("Let $U$ be a basis. Then ")
(True, False)
"""

from __future__ import annotations

import re

ASSUMING = re.compile(
    r"\b(?:let|suppose|assume|assuming|given|if|whenever|such that|provided)"
    r"(?: that)?(?: \w+){0,2}\s*$",
    re.IGNORECASE,
)
# “Let $U \in …$ with $U^T U = I$ and $P = U U^T$”: what a sentence lets be, without a verb. The
# loop is possessive: a text of many formulas is read once.
LET = re.compile(
    r"\W*(?:[^.,;:$]{1,30},\s*)?(?:let|for|suppose|assume|consider|given|take|fix)\b"
    r"(?:\$[^$]*\$|\\\((?:(?!\\\)).)*\\\)|[^\w$]|\b(?:an?|the|be|every|each|all|with|and|where|that|"
    r"such|satisfy\w*|satisfies|any|some|matrix|matrices|projection|projector|basis|vectors?|"
    r"orthonormal|orthogonal|columns?|subspace|unit|is|are|arbitrary|rotation|permutation|square|"
    r"invertible|symmetric|diagonal|real)\b)*+",
    re.IGNORECASE,
)
WITH = re.compile(r"\b(?:with|where|satisfying|satisfies|such that|and)\s*$", re.IGNORECASE)
# “where $E$ is orthogonal, $E^T E = I$”: an equation that says what a word before it means.
MEANT = re.compile(
    r"\b(?:orthogonal|orthonormal columns|symmetric|idempotent|(?:row[- ])?stochastic|"
    r"normali[sz]ed|unit (?:norm|length|vector)|of unit (?:norm|length)|invertible|"
    r"cent(?:er|re)d|commut\w+)"
    r"(?: matri(?:x|ces)| vectors?)?\s*[,:(]\s*(?:i\.e\.,?|that is,?|so that)?\s*$",
    re.IGNORECASE,
)
# “For all such matrices $A B = B A$ and …” claims both, and supposes nothing.
FOR_ALL = re.compile(
    r"\W*for\b(?!.*\b(?:with|where|satisfying|satisfy|satisfies|such that)\b)",
    re.IGNORECASE | re.DOTALL,
)
DECLARES = re.compile(
    r"\b(?:let|suppose|assume|where|given|with|for|consider|take)\b", re.IGNORECASE
)
CONCLUDED = re.compile(
    r"\b(?:then|hence|thus|therefore|so(?! that)|follows|implies|since|because|if|show\w*|"
    r"prove\w*)\b",
    re.IGNORECASE,
)
# “There are $H$ heads, each with $W_Q$”: what each of several has is meant from there on.
OWN = r"(?! (?:\w+ )?(?:has|have|having|with|of)\b)"
LOCAL = re.compile(
    rf"\b(?:any|(?:every|each){OWN}|some|all|arbitrary)(?: \w+){{0,3}}\s*$", re.IGNORECASE
)
FOR = re.compile(
    r"\bfor\s+(?:(?:\$[^$]*\$|\\\((?:(?!\\\)).)*\\\))\s*(?:,|and|, and)\s*)?$", re.IGNORECASE
)
IN_CASE = re.compile(
    r"\b(?:if|for|when|whenever|provided|unless)(?: that)?(?: \w+){0,2}\s*$", re.IGNORECASE
)


def assumes(words: str) -> bool:
    """Return whether the words before an equation say that it is assumed.

    >>> assumes("where $E$ is orthogonal, "), assumes("Then $E$ is orthogonal, ")
    (True, False)
    """
    means = MEANT.search(words) and DECLARES.search(words) and not CONCLUDED.search(words)
    lets = WITH.search(words) and LET.fullmatch(words) and not FOR_ALL.match(words)
    return bool(means or ASSUMING.search(words) or lets)


def is_local(words: str) -> bool:
    """Return whether what follows is said of any or all of several things: “for any matrix ”."""
    return LOCAL.search(words) is not None


def is_for_letters(words: str) -> bool:
    """Return whether letters follow that are those of one statement: “For $A$ and ”."""
    return FOR.search(words) is not None


def opens_a_case(words: str) -> bool:
    """Return whether what follows is a case, which counts for one paragraph: “If ”."""
    return IN_CASE.search(words) is not None


def plain_words(words: str) -> str:
    """Return words without the mark that opens the formula after them."""
    return re.sub(r"(\$\$?|\\\(|\\\[|`|\\begin\{[a-z]+\*?\})\s*$", "", words)
