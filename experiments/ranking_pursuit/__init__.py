"""Tsivtsivadze and Heskes, Semi-supervised ranking pursuit, 2013: its five tables on Jester and MovieLens."""
