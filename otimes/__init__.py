"""The public API of otimes. Modules are imported lazily, on first use.

    >>> import otimes as ot
    >>> from sympy import KroneckerProduct as kron, MatrixSymbol, symbols
    >>> n, d = symbols("n d", positive=True, integer=True)
    >>> A, B = MatrixSymbol("A", n, n), MatrixSymbol("B", n, n)
    >>> V, W = MatrixSymbol("V", d, d), MatrixSymbol("W", d, d)
    >>> ot.decide(kron(A, V) * kron(B, W), kron(A * B, V * W)).status
    'proved'

`__init__.pyi` lists the public names and their modules.
"""

from typing import Any

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

__version__ = "0.1.0"


def load_ipython_extension(ipython: Any) -> None:
    """Add the cell magic `%%check` to a notebook, by `%load_ext otimes`."""
    from otimes.proofs.documents.check import check_cell

    ipython.register_magic_function(check_cell, "cell", "check")
