"""Read and write LETOR text."""
