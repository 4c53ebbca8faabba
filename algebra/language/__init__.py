"""The language of statements: expressions, their shapes, their assumptions, and how they print."""
