"""People and servers: screening, preferences, grading, pages and an HTTP service."""
