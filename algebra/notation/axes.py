r"""The axis of a softmax, as code names it: `\mathrm{softmax}(S, \mathrm{dim}=-1)`.

>>> from otimes.algebra.notation.parser import parse_formula
>>> from otimes.algebra.notation.tree import latex
>>> for text in (r"\mathrm{softmax}(S, \mathrm{axis}=0)", r"\mathrm{softmax}_{\mathrm{dim}=-1}(S)"):
...     print(latex(with_axis(parse_formula(text)[0].terms[0])))
\mathrm{softmax}_{\mathrm{cols}}(S)
\mathrm{softmax}_{\mathrm{rows}}(S)
"""

from __future__ import annotations

import re
from dataclasses import replace

from otimes.algebra.notation.tree import Apply, Listing, Node, Slot, latex

NAMED = re.compile(r"(?:axis|dim)=(-?\d)")
AXES = {"-1": "rows", "1": "rows", "0": "cols", "-2": "cols"}


def with_axis(e: Apply) -> Apply:
    """Return a softmax with what it runs along below it, where an argument or an index says so."""
    if e.function.base not in ("softmax", "Softmax"):
        return e
    if len(e.arguments) == 1 and isinstance(e.arguments[0], Listing):
        listed = e.arguments[0]
        if listed.brackets == ("", "") and listed.marks == ("", ",", "="):
            along = _along(f"{_plain(listed.parts[1])}={_plain(listed.parts[2])}")
            return _below(e, listed.parts[0], along) if along else e
    if len(e.function.sub) == 1 and len(e.arguments) == 1:
        along = _along(re.sub(r"\\mathrm|[{}\s]", "", e.function.sub[0].text))
        return _below(e, e.arguments[0], along) if along else e
    return e


def _along(text: str) -> str:
    named = NAMED.fullmatch(text)
    return AXES.get(named[1], "") if named else ""


def _plain(node: Node) -> str:
    return re.sub(r"\\mathrm|[{}\s]", "", latex(node))


def _below(e: Apply, argument: Node, along: str) -> Apply:
    function = replace(e.function, sub=(Slot("label", along),))
    return replace(e, function=function, arguments=(argument,))
