"""The formulas of a document and the prose around them, from Markdown, LaTeX or a notebook."""
