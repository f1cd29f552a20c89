"""`python -m fuzz` runs the fuzzers."""

from fuzz.run import main

main()
