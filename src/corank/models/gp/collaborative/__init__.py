"""Gaussian processes of many users who share a prior."""
