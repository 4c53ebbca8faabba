"""Run the command line: `python -m otimes` is the same as `otimes`."""

from otimes.cli import main

main()
