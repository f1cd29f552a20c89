"""Commands that collect judgements from people."""
