"""The command `corank screen`: session on a terminal, results, replays, certificates."""
