"""What few judgements are worth, and what makes more of them: the choice of rows, smoothed text, relevance feedback."""
