"""Grangier and Bengio's experiment: learn a similarity from links, and search other collections with it."""
