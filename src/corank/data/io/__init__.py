"""Read and write tables, TREC files, click logs and items."""
