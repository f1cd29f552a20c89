"""Verbs that fit, apply, measure and explain rankers."""
