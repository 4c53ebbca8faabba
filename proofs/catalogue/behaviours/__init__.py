"""Chapter 11: what heads, neurons and whole models do, and the tools of the field."""
