"""Which known mistake explains a wrong activation, and where it is."""
