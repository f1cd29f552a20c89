"""Kernels for text: postings, top-k search and links."""
