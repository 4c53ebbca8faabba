"""Words that excuse an equation which one edit makes true.

A counterexample may be to a reading that the author did not mean: a symbol is not declared, or a
function is not read. Where a single edit makes the equation true in that same reading, the reading
is the author's, and the equation is a slip. It is none where the text has words for a property
under which the equation holds as it stands: a missing transpose is right of a symmetric matrix.
"""

from __future__ import annotations

import re

ANY = (
    r"such that|satisf\w+|approximat\w+|special case|stationary|optim\w+|minimi[sz]\w+|"
    r"maximi[sz]\w+|only if|solv\w+|solutions?|limit|gauge|choose|chosen|require\w*|constraint\w*"
)
# What a text may say of symbols so that an equation holds without the edit, by the kind of edit.
PROPERTIES = {
    "transpose": r"(?:skew-?|anti)?symmetric|hermitian|self-adjoint|orthogonal|unitary|diagonal|"
    r"projections?|projectors?|covariance|rotations?|permutations?",
    "swap": r"commut\w+|diagonal\w*|circulant|scalars?|normal|symmetric",
    "sign": r"skew\w*|antisymmetric|zero|convention",
    "index": r"symmetric|circulant|toeplitz|same|equal|identical|shared?|tied",
    "range": r"rank|truncat\w+|nonzero|non-zero|remaining|zero",
    "factor": r"unit|orthonormal|orthogonal|isometr\w+|invarian\w+|normali[sz]\w+|stochastic|"
    r"projections?|projectors?|idempotent|one-hot|whiten\w*|identity|null ?space|kernel|zero|"
    r"absorb\w*|fold\w*",
}
# Properties that a section is about, so that they may be meant anywhere in it.
STRONG = {
    "transpose": r"symmetric|hermitian|self-adjoint|orthogonal projec\w+",
    "swap": r"symmetric|commut\w+|simultaneous\w*",
    "index": r"symmetric|hermitian",
    "factor": r"idempotent|projections?|projectors?",
}
IN_SECTION = {
    kind: re.compile(rf"\b(?:{words})\b", re.IGNORECASE) for kind, words in STRONG.items()
}
SETTLED = {
    kind: re.compile(rf"\b(?:{words})\b", re.IGNORECASE) for kind, words in PROPERTIES.items()
}
CONDITION = re.compile(rf"\b(?:{ANY})\b", re.IGNORECASE)


def is_excused(kind: str, sentence: str, paragraph: str, section: str = "") -> bool:
    """Return whether words may assume that under which an equation holds without an edit.

    >>> is_excused("transpose", "", "for symmetric scores"), is_excused("sign", "", "so symmetric")
    (True, False)
    """
    kind = "factor" if kind in ("term", "power", "number") else kind
    near, about = SETTLED.get(kind), IN_SECTION.get(kind)
    said = (near and near.search(paragraph)) or (about and about.search(section))
    return bool(CONDITION.search(sentence) or said)
