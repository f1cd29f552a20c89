"""Tsivtsivadze, Hofmann and Heskes, Large Scale Co-Regularized Ranking, 2012: does agreement of views help?"""
