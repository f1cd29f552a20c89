"""Fields of records: names of columns and tags, authors, references, judgements, and clean texts."""
