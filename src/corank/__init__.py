"""Learn to rank from few judgements and much unjudged data."""

from corank import _moved
from corank._lazy import lazy
from corank._version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy(__name__)
_moved.install()
