"""Canonical forms against brute force over all renamings of the wires."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from otimes.algebra.budget import STEPS, Budget, Exhausted
from otimes.algebra.diagrams.canonical import canonical
from otimes.algebra.diagrams.diagram import DEAD, Diagram
from otimes.algebra.errors import Undecided


def renamed(diagram: Diagram, draw: random.Random) -> Diagram:
    """Return the diagram with wires renamed and boxes shuffled."""
    to = list(range(len(diagram.sorts)))
    draw.shuffle(to)
    sorts = [0] * len(to)
    for wire, sort in enumerate(diagram.sorts):
        sorts[to[wire]] = sort
    boxes = [(label, *[to[w] for w in wires]) for label, *wires in diagram.boxes]
    draw.shuffle(boxes)
    return Diagram(
        tuple(to[w] for w in diagram.rows),
        tuple(to[w] for w in diagram.cols),
        tuple((name, to[w]) for name, w in diagram.named),
        tuple(boxes),
        tuple(sorts),
    )


def isomorphic(a: Diagram, b: Diagram) -> bool:
    """Try every renaming of the wires of a."""
    if (len(a.sorts), len(a.rows), len(a.cols), len(a.named), len(a.boxes)) != (
        len(b.sorts),
        len(b.rows),
        len(b.cols),
        len(b.named),
        len(b.boxes),
    ):
        return False
    target = sorted(b.boxes)
    for to in itertools.permutations(range(len(a.sorts))):
        if (
            all(a.sorts[w] == b.sorts[to[w]] for w in range(len(to)))
            and tuple(to[w] for w in a.rows) == b.rows
            and tuple(to[w] for w in a.cols) == b.cols
            and tuple((name, to[w]) for name, w in a.named) == b.named
            and sorted((label, *[to[w] for w in wires]) for label, *wires in a.boxes) == target
        ):
            return True
    return False


def random_diagram(draw: random.Random) -> Diagram:
    """Few labels and few wires, so that many diagrams are isomorphic."""
    wires = draw.randint(1, 5)
    boxes = []
    for _ in range(draw.randint(1, 4)):
        label, arity = draw.choice([(0, 2), (0, 2), (0, 2), (0, 2), (1, 1), (2, 3)])
        boxes.append((label, *[draw.randrange(wires) for _ in range(arity)]))
    rows = tuple(draw.randrange(wires) for _ in range(draw.choice([0, 0, 0, 0, 1, 2])))
    cols = tuple(draw.randrange(wires) for _ in range(draw.choice([0, 0, 0, 1])))
    touched = {*rows, *cols, *[w for box in boxes for w in box[1:]]}
    named = (("h", draw.choice(sorted(touched))),) if draw.random() < 0.1 else ()
    return Diagram(rows, cols, named, tuple(boxes), (0,) * wires)


def test_the_form_is_the_same_exactly_for_isomorphic_diagrams() -> None:
    draw = random.Random(17)
    diagrams = [random_diagram(draw) for _ in range(500)]
    forms = [canonical(diagram) for diagram in diagrams]
    met = {True: 0, False: 0}
    for p in range(len(diagrams)):
        for q in range(p):
            alike = sorted(map(len, diagrams[p].boxes)) == sorted(map(len, diagrams[q].boxes))
            same = alike and isomorphic(diagrams[p], diagrams[q])
            met[same] += 1
            assert (forms[p] == forms[q]) == same, (diagrams[p], diagrams[q])
    assert met[True] > 100, met


def test_the_form_does_not_depend_on_names() -> None:
    draw = random.Random(23)
    for _ in range(400):
        diagram = random_diagram(draw)
        assert canonical(renamed(diagram, draw)) == canonical(diagram)


def test_the_form_is_a_renaming_of_its_input() -> None:
    """The promise that a bug in the labelling can only lose equalities."""
    draw = random.Random(29)
    for _ in range(150):
        diagram = random_diagram(draw)
        form, loops = canonical(diagram)
        touched = {*diagram.rows, *diagram.cols, *[w for b in diagram.boxes for w in b[1:]]}
        live = sorted(touched)
        new = {w: k for k, w in enumerate(live)}
        compact = Diagram(
            tuple(new[w] for w in diagram.rows),
            tuple(new[w] for w in diagram.cols),
            tuple((name, new[w]) for name, w in diagram.named),
            tuple((b[0], *[new[w] for w in b[1:]]) for b in diagram.boxes),
            tuple(diagram.sorts[w] for w in live),
        )
        assert isomorphic(compact, form)
        assert len(loops) == len(diagram.sorts) - len(live)
        assert canonical(form) == (form, ())


def test_free_wires_are_factors_and_dead_ones_are_not() -> None:
    _, loops = canonical(Diagram((0,), (0,), (), (), (7, 3, DEAD, 3)))
    assert loops == (3, 3)


def test_two_indices_on_one_wire_are_a_delta() -> None:
    delta = Diagram((), (), (("i", 0), ("j", 0)), (), (0,))
    one = Diagram((), (), (("i", 0), ("j", 1)), (), (0, 0))
    assert canonical(delta)[0] != canonical(one)[0]


def graph(edges: Any, both: bool = True) -> Diagram:
    edges = list(edges)
    wires = 1 + max(max(edge) for edge in edges)
    boxes = [(0, p, q) for p, q in edges] + [(0, q, p) for p, q in edges if both]
    return Diagram((), (), (), tuple(boxes), (0,) * wires)


def cycle(length: int, start: int = 0) -> list[tuple[int, int]]:
    return [(start + k, start + (k + 1) % length) for k in range(length)]


def rook() -> list[tuple[int, int]]:
    cells = list(itertools.product(range(4), repeat=2))
    return [
        (p, q)
        for p, (a, b) in enumerate(cells)
        for q, (c, e) in enumerate(cells)
        if p < q and (a == c or b == e)
    ]


def shrikhande() -> list[tuple[int, int]]:
    steps = [(0, 1), (0, 3), (1, 0), (3, 0), (1, 1), (3, 3)]
    cells = list(itertools.product(range(4), repeat=2))
    return [
        (p, q)
        for p, (a, b) in enumerate(cells)
        for q, (c, e) in enumerate(cells)
        if p < q and ((c - a) % 4, (e - b) % 4) in steps
    ]


SYMMETRIC = {
    "cycle of 40": graph(cycle(40), both=False),
    "undirected cycle of 40": graph(cycle(40)),
    "K_6": graph(itertools.combinations(range(6), 2)),
    "K_8": graph(itertools.combinations(range(8), 2)),
    "star with 10 arms": graph([(0, k) for k in range(1, 11)], both=False),
    "star with 10 long arms": graph(
        [(0 if k == 0 else 4 * arm + k, 4 * arm + k + 1) for arm in range(10) for k in range(4)],
        both=False,
    ),
    "20 equal traces": Diagram((), (), (), tuple((0, k, k) for k in range(20)), (0,) * 20),
    "8 equal cycles": graph([e for k in range(8) for e in cycle(6, 6 * k)]),
    "cube": graph([(v, v ^ (1 << k)) for v in range(16) for k in range(4) if v < v ^ (1 << k)]),
    "rook": graph(rook()),
    "Shrikhande": graph(shrikhande()),
    "12 pairs on the same wires": Diagram((0,), (1,), (), ((0, 0, 2), (1, 2, 1)) * 12, (0, 0, 0)),
}


@pytest.mark.parametrize("name", SYMMETRIC)
def test_symmetry_is_settled(name: str) -> None:
    draw = random.Random(31)
    diagram = SYMMETRIC[name]
    assert canonical(renamed(diagram, draw)) == canonical(diagram)


def test_what_refinement_cannot_tell_apart_is_told_apart() -> None:
    """Pairs with equal degrees everywhere, which colouring alone would identify."""
    assert canonical(graph(cycle(12))) != canonical(graph(cycle(6) + cycle(6, 6)))
    assert canonical(graph(rook())) != canonical(graph(shrikhande()))


def test_alike_is_not_equal() -> None:
    """Frucht's graph: every wire has the same degree, and none can be carried to another."""
    frucht = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 0), (0, 7), (1, 7), (2, 8)]
    frucht += [(3, 9), (4, 9), (5, 10), (6, 10), (7, 11), (8, 11), (8, 9), (10, 11)]
    draw = random.Random(37)
    forms = {canonical(renamed(graph(frucht), draw)) for _ in range(20)}
    assert len(forms) == 1


def test_a_form_that_is_kept_takes_as_many_steps_and_no_more_than_there_are() -> None:
    diagram = graph([*cycle(7), (0, 3)])
    with Budget(1) as first:
        form = canonical(diagram)
    with Budget(1) as again:
        assert canonical(diagram) == form
    assert again.spent == first.spent > 100
    with Budget((first.spent - 1) / STEPS), pytest.raises(Exhausted):
        canonical(diagram)


def test_giving_up_is_an_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("otimes.algebra.diagrams.canonical.MAX_TRIES", 3)
    with pytest.raises(
        Undecided, match="so many symmetries that [34] labellings did not settle it"
    ):
        canonical(graph(rook()))
