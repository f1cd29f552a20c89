"""Sculley, Combined Regression and Ranking, KDD 2010: `letor` makes its table 2, `text` its table 1 on news."""
