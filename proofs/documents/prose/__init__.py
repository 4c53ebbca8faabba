"""What the text around the formulas says: sentences, tables, comments and notation files."""
