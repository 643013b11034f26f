"""`python -m cmdplab`."""

from cmdplab.cli import main

main()
