"""Leaderboards from votes of people and of language models."""
