"""Compare rankers on the same folds; reports, model cards and charts."""

from corank._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
