"""What a ranking problem is: rows, scores, queries or pairs, and the files they live in."""
