"""What logged clicks teach on MQ2008, with and without weights for who looked where."""
