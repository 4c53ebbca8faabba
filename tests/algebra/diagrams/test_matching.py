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
