"""`python -m otimes` is `otimes`."""

from otimes.cli import main

main()
