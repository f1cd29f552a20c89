"""Learning from clicks on MQ2008: published figures, interleaving, and agreement of views on unclicked rows."""
