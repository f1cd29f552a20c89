"""Text search: corpus, index, BM25, and LinkLearn, a similarity of texts learnt from links."""

from corank._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
