"""Documents whose mathematics is checked: Markdown, LaTeX and notebooks.

source       a document as text, its formulas and the prose around them, with positions
markdown     formulas of Markdown
tex          formulas of LaTeX, its macros expanded
notebook     formulas of the Markdown cells of a notebook
prose        what sentences and tables declare of symbols
notation     notation files: shapes, convention and hypotheses for a document
context      what is known of the symbols at a line of the document
suggestions  the smallest edit that makes a false equation true
links        the verdict on one equation or one link of a chain
check        `check_document`
report       `DocumentReport`: text, JSON, SARIF, annotations
html         the document with marks, as one HTML file
"""
