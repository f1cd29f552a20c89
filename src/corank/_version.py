"""The version of corank, read by the build and by users."""

__version__ = "0.3.0"
