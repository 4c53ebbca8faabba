"""A pattern of boxes is found in another diagram, or nowhere."""

from otimes.algebra.diagrams.diagram import Diagram
from otimes.algebra.diagrams.matching import Pattern, matches

BOX = 7
TARGET = Diagram(rows=(0,), cols=(1,), named=(), boxes=((BOX, 0, 2), (BOX, 2, 1)), sorts=(3, 3, 3))


def test_a_box_is_found_wherever_it_stands() -> None:
    box = Diagram(rows=(0,), cols=(1,), named=(), boxes=((BOX, 0, 1),), sorts=(3, 3))
    assert len(list(matches(Pattern.of(box), TARGET))) == 2


def test_a_leg_without_a_box_could_be_any_wire_and_is_found_nowhere() -> None:
    """As of a hypothesis of which a term is the same for all values of a free index."""
    legs = (("a", 2),)
    idle = Diagram(rows=(0,), cols=(1,), named=legs, boxes=((BOX, 0, 1),), sorts=(3, 3, 3))
    assert list(matches(Pattern.of(idle), TARGET)) == []


def test_contexts_that_differ_in_a_free_index_alone_are_two() -> None:
    """F[k] F[l] and F[k] F[k] hold F[i] F[j] with another j, in the same place."""
    pattern = Diagram(
        (0,), (1,), (("i", 2), ("j", 3)), ((BOX, 2, 0, 4), (BOX, 3, 4, 1)), (3, 3, 5, 5, 3)
    )
    one = pattern._replace(named=(("k", 2),))
    two = one._replace(boxes=((BOX, 2, 0, 3), (BOX, 2, 3, 1)), sorts=(3, 3, 5, 3))
    holes = [next(matches(Pattern.of(pattern), e)).with_hole() for e in (one, two)]
    assert holes[0].boxes[-1][-2:] == (2, 3)
    assert holes[1].boxes[-1][-2:] == (2, 2)
