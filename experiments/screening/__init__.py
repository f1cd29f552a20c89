"""Screening of reviews and of one large collection, in the order of corank, of a linear SVM, and in random order."""
