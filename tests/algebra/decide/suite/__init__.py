"""The project's own suite of identities, true and false, in twelve kinds."""

from __future__ import annotations

from tests.algebra.decide.suite.blocks import BLOCK
from tests.algebra.decide.suite.entrywise import HADAMARD
from tests.algebra.decide.suite.heads import HEAD
from tests.algebra.decide.suite.hypotheses import BEYOND as BEYOND_EQUATIONS
from tests.algebra.decide.suite.hypotheses import HYPOTHESES
from tests.algebra.decide.suite.identity import Identity, Kind
from tests.algebra.decide.suite.index_sums import INDEX_SUM
from tests.algebra.decide.suite.inverses import INVERSE
from tests.algebra.decide.suite.kron_entries import KRON
from tests.algebra.decide.suite.paths import PATH
from tests.algebra.decide.suite.projections import PROJECTION
from tests.algebra.decide.suite.small_sizes import SMALL_SIZE
from tests.algebra.decide.suite.transposes import TRACE, TRANSPOSE

__all__ = ["BEYOND", "KINDS", "SUITE", "Identity", "Kind"]

KINDS = (
    KRON,
    HEAD,
    PATH,
    TRANSPOSE,
    TRACE,
    HADAMARD,
    BLOCK,
    PROJECTION,
    INVERSE,
    HYPOTHESES,
    INDEX_SUM,
    SMALL_SIZE,
)
SUITE = tuple(identity for kind in KINDS for identity in kind.identities)
BEYOND = tuple(BEYOND_EQUATIONS.identities)
