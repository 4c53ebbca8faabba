"""Reading members of families at affine indices.

A member is a box whose label has the indices as affine forms; its wires are the variables, then
rows and columns. The label also has the range of each variable.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from otimes.algebra.diagrams.diagram import Diagram, Sort
from otimes.algebra.diagrams.legs import branches
from otimes.algebra.diagrams.sums import DiagramSum, Form, Label, Terms
from otimes.algebra.language.affine import AffineMember
from otimes.algebra.language.trees import key
from otimes.algebra.reading.interpretation import Interpretation, opened_legs


def affine_member(reading: Interpretation, e: AffineMember) -> DiagramSum:
    """Return the value of a member of a family at affine indices."""
    rows, cols = map(reading.dimensions.legs, e.shape)
    variables: dict[Any, Sort] = {}
    for variable, count in zip(e.variables, e.counts, strict=True):
        legs = reading.dimensions.legs(count)
        if legs:  # else it has the value 0
            variables[variable] = reading.single(legs, variable)
    places = [e.variables.index(variable) for variable in variables]
    sorts_of = tuple(variables.values())
    forms = tuple(
        Form(constant, tuple(factors[k] for k in places), sorts_of) for constant, factors in e.forms
    )
    terms: Terms = {}
    for row_branch, col_branch in product(branches(rows), branches(cols)):
        sorts: list[Sort] = []
        r, c = opened_legs(row_branch, sorts), opened_legs(col_branch, sorts)
        wires = {key(v): len(sorts) + k for k, v in enumerate(variables)}
        sorts += sorts_of
        label = reading.label(Label(e.family.name, forms, rows, cols, row_branch, col_branch))
        box = (label, *wires.values(), *[w for w in (*r, *c) if w >= 0])
        terms[Diagram(r, c, tuple(sorted(wires.items())), (box,), tuple(sorts))] = 1
    return DiagramSum(rows, cols, terms)


def index_texts(label: Label) -> list[str]:
    """Return the indices of a label as text, with a dot for each variable."""
    return [_text(form) for form in label.indices if isinstance(form, Form)]


def _text(form: Form) -> str:
    parts = {1: "+·", -1: "-·"}
    constant = "" if form.constant == 0 and form.factors else str(form.constant)
    shown = "".join(parts.get(f, f"{f:+}·") for f in form.factors)
    return constant + (shown if constant else shown.removeprefix("+"))
