"""Formulas as people write them, in LaTeX or Unicode, read into statements of the language.

tokens       the words of a formula, each with its offset
tree         the syntax tree, and its LaTeX
slots        subscripts and superscripts: labels, indices, ranges
parser       tokens -> syntax tree
dimensions   sizes with unknowns, and their unification
symbols      what symbols stand for: shapes, sizes, functions, and where each was declared
typed        a part of a formula with its shape, and how it is built
arithmetic   whole numbers made of sizes and indices: n - 1, l + 1
names        the readers of symbols; operations and functions: of those
expectations the E of an expectation, which is no factor
printed      what the printers write and papers do not: e_i, M_n, W[h], ∏←_l<L; printed_functions
elaborate    syntax tree -> SymPy, with the shapes that the formula requires
text         `parse`, and the strings that `decide`, `prove` and `facts` accept
"""
