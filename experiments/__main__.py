"""``python -m experiments NAME`` repeats a paper's experiment."""

from corank.cli import main
from experiments.command import app

main(app, "python -m experiments")
