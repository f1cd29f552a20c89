"""Few human grades and LLM judges on TREC DL 2019: errors and coverage of corrected estimates."""
