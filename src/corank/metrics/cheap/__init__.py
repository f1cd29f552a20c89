"""Evaluation with few human (gold) and many cheap grades: corrected estimates, stacked judges, documents to grade."""
