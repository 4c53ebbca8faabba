"""Claims of a referee on blocks, entailment and functions, each with a near miss."""
