"""Learning from clicks on MQ2008: published figures, comparisons by interleaving, and agreement of views on unclicked rows."""
