"""The ranking problem: rows, scores, queries or pairs, weights, splits and synthetic problems."""
