"""Kernels for clicks: click models, policies, interleaving and online updates."""
