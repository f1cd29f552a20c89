"""An HTTP service that ranks, logs what was shown and clicked, and learns from each event exactly once."""
