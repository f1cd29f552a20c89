"""
Commands that collect judgements from people.

The names below repeat the registries, which take longer to import than ``--help`` may take; a test compares them.
"""

STOPPING_RULES = (
    "agree (model and test agree; the default), decline or poisson (models), hypergeometric or draws (exact tests), "
    "sample (random sample as proof), consecutive (50 irrelevant in a row; missed 95 % recall in half of the replays)"
)
"""Names of `corank_lab.screening.stopping.rules.STOPPING_RULES`."""

ROW_STRATEGIES = "uncertain (default), top, representative or random"
"""Names of `corank.base.suggestions.strategies.STRATEGIES`."""

PAIR_STRATEGIES = "entropy, bald, uncertainty, order or random"
"""Names of `corank.models.gp.preference.questions.PAIR_STRATEGIES`."""
