"""The catalogue of theorems, its checks, and the checker of certificates.

`theorem` defines what a theorem is, `catalogue` holds them by chapter, `verification` runs the
checks of each (`checks`), and `replay` checks a certificate by itself.
"""
