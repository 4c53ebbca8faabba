"""What is known of a symbol at a line of a document: declarations, definitions, hypotheses."""
