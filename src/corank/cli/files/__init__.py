"""Verbs that convert files, and the demonstration."""
