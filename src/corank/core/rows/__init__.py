"""Rows as kernels read them: dense or CSR, scaled, sorted, centred and multiplied."""
