"""
Commands that collect judgements from people.

The names below repeat the registries, which take longer to import than ``--help`` may take; a test compares them.
"""

STOPPING_RULES = "decline (careful model), poisson (cheap model) or sample (random sample as proof)"
"""Names of `corank.judging.screening.stopping.STOPPING_RULES`."""

ROW_STRATEGIES = "uncertain (default), top, representative or random"
"""Names of `corank.judging.suggestions.strategies.STRATEGIES`."""

PAIR_STRATEGIES = "entropy, bald, uncertainty or random"
"""Names of `corank.gp.preference.questions.PAIR_STRATEGIES`."""
