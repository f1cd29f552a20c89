"""Commands that fit, apply, evaluate, compare and explain rankers."""
