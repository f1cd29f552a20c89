"""What sessions with people share: the journal of answers."""
