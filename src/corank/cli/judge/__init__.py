"""Verbs that collect judgements from people."""
