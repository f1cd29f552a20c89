"""Chu and Ghahramani, Extensions of Gaussian Processes for Ranking, 2005: its two figures."""
