"""Reading block matrices: blocks side by side are legs cut in blocks (`legs`)."""

from __future__ import annotations

import sympy

from otimes.algebra.diagrams.legs import Legs, in_block, stacked
from otimes.algebra.diagrams.sums import DiagramSum
from otimes.algebra.reading.interpretation import Interpretation


def block_matrix(reading: Interpretation, e: sympy.BlockMatrix) -> DiagramSum:
    """Return the value of a block matrix, given as a table of blocks."""
    height, width = e.blockshape
    blocks = {(i, j): reading.value(e.blocks[i, j]) for i in range(height) for j in range(width)}
    return _stack(reading, blocks, height, width)


def block_diagonal(reading: Interpretation, e: sympy.BlockDiagMatrix) -> DiagramSum:
    """Return the value of a block diagonal matrix."""
    blocks = {(k, k): reading.value(block) for k, block in enumerate(e.args)}
    return _stack(reading, blocks, len(e.args), len(e.args))


def _stack(
    reading: Interpretation, blocks: dict[tuple[int, int], DiagramSum], height: int, width: int
) -> DiagramSum:
    """Return the matrix with these blocks at their (row, column) positions, zero elsewhere."""
    row_legs: list[Legs] = [()] * height
    col_legs: list[Legs] = [()] * width
    for (i, j), block in blocks.items():
        for legs, k, mine in ((row_legs, i, block.rows), (col_legs, j, block.cols)):
            if legs[k]:
                reading.dimensions.fit(legs[k], mine)
            legs[k] = mine
    rows, row_starts = stacked(row_legs)
    cols, col_starts = stacked(col_legs)
    made = []
    for (i, j), block in blocks.items():
        for d, coefficient in block.terms.items():
            r = in_block(d.rows, block.rows, row_starts[i]) if height > 1 else d.rows
            c = in_block(d.cols, block.cols, col_starts[j]) if width > 1 else d.cols
            made.append((d._replace(rows=r, cols=c), coefficient))
    return reading.collect(rows, cols, made)
