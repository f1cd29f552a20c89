"""Pages of screening: import, reading, conflicts and report."""
