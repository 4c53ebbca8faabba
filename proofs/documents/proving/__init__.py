"""Ways to prove or refute one equation from what is known of its symbols."""
