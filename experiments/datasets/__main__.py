"""``python -m experiments.datasets`` lists the data sets, and fetches one."""

from corank.cli import main
from experiments.datasets.command import app

main(app, "python -m experiments.datasets")
