"""Screening: records of reviews and stories of one pool, read in the order of corank, of a linear SVM, or at random."""
