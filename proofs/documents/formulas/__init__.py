"""What a formula shows by itself, whatever is declared of its symbols."""
