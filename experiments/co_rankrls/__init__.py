"""Tsivtsivadze et al., Co-Regularized Least-Squares for Label Ranking, 2010: its table and figure, on MQ2008."""
