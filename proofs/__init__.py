"""What is true: the catalogue of theorems, and what is done with each of them.

`theorem` says what a theorem is, `catalogue/` holds them by chapter, and `verification` puts each
to its four checks: `proof`, `exact`, `on_models` and `mutants`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from proofs.catalogue import catalogue
    from proofs.evidence import Report
    from proofs.theorem import Theorem
    from proofs.verification import verify

__otimes__ = "proofs"

__all__ = ["Report", "Theorem", "catalogue", "verify"]

_HOME = {
    "Report": "evidence",
    "Theorem": "theorem",
    "catalogue": "catalogue",
    "verify": "verification",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module 'proofs' has no attribute {name!r}")
    return getattr(import_module(f"proofs.{_HOME[name]}"), name)
