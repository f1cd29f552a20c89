"""Burges, Ranking as learning structured outputs, 2005: forces and scorers compared, on MQ2008, MSLR and made data."""
