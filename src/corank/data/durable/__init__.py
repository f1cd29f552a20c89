"""Atomic files, file locks and durable JSON lines."""
