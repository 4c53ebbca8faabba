"""Lower and mixed precision: how far a correct implementation may be from the reference."""
