"""Burges, Ranking as learning structured outputs, 2005: λ and scorers compared on MQ2008, MSLR and synthetic data."""
