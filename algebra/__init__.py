"""What can be said about transformer circuits, and whether it holds for every dimension.

The story, one file a chapter: `scalars` (coefficients), `diagram` and `canonical` (the normal
form), `language`, `nonlinear` and `shapes` (what may be said), `interpret` with `entries`,
`concatenation`, `inverses` and `applied` (expression to sum of diagrams), `decide` (the verdict),
`matching` and `entailment` (what follows from hypotheses), `axioms` (what is taken as true),
`induction` (every depth), `written_out` and `expansion` (sizes that are numbers), `exact`, `refute`
and `satisfy` (counterexamples), `rules`, `explain` and `derivation` (steps),
`certificate` (what is checked elsewhere), `contract` and `evaluate` (numbers), `paths` and
`facts`, `latex`, `text` and `draw` (what is shown).
"""

__otimes__ = "algebra"
