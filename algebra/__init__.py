"""What can be said about transformer circuits, and whether it holds for every dimension.

The story, one file a chapter: `scalars` (coefficients), `diagram` and `canonical` (the normal
form), `language` and `shapes` (what may be said), `interpret` (expression to sum of diagrams),
`decide` (the verdict), `exact` and `refute` (counterexamples), `contract` and `evaluate` (numbers).
"""

__otimes__ = "algebra"
