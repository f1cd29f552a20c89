"""Writers of records, one module per family of formats."""
