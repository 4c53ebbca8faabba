"""Documents whose mathematics is checked: Markdown, LaTeX and notebooks.

The packages from the bottom up; each imports only itself and those above it in this list.

containers  the formulas of a file and the prose around them, with positions; macros expanded
reporting   `Found`, the verdict on one equation; `DocumentReport` as text, JSON, SARIF and HTML
formulas    what one formula shows by itself: differentials, orders of growth, common factors
symbols     what is known of the symbols at a line: declarations, definitions, hypotheses
proving     ways to prove or refute one equation from what is known
prose       what sentences, tables, comments and notation files say of symbols
verdicts    the verdict on every link of a chain, and the edit that mends a false one
check       `check_document` and `check_text`
"""
