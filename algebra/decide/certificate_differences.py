"""Where two trees of a certificate differ by parts that are proved to be equal.

>>> known = {json.dumps([["tensor", 0], ["tensor", 1]]): "a proof"}
>>> differences(["MatMul", ["tensor", 0], 2], ["MatMul", ["tensor", 1], 2], known)
[([1], ['tensor', 1], 'a proof')]
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from otimes.algebra.decide.certificate_trees import Tree

IN_ANY_ORDER = ("Add", "MatAdd", "Mul", "HadamardProduct")
Differences = list[tuple[list[int], Tree, Any]]


def differences(
    old: Tree, new: Tree, known: Mapping[str, Any], at: tuple[int, ...] = ()
) -> Differences | None:
    """Return the places where trees differ by parts known to be equal, with these and their proofs.

    None if they differ otherwise; SymPy may have put the terms of a sum in another order.
    """
    proof = known.get(json.dumps([old, new]))
    if proof is not None:
        return [(list(at), new, proof)]
    if old == new:
        return []
    if not (isinstance(old, list) and isinstance(new, list) and len(old) == len(new)):
        return None
    left = list(range(len(new)))
    found: Differences = []
    for k, part in enumerate(old):
        for j in left if old[0] in IN_ANY_ORDER else [k]:
            here = differences(part, new[j], known, (*at, k))
            if here is not None:
                left.remove(j)
                found += here
                break
        else:
            return None
    return found
