"""Targets of exports, one a module: a function with the decorator `target`. All modules of this folder are imported."""

from importlib import import_module
from pkgutil import iter_modules

for module in iter_modules(__path__):
    import_module(f"{__name__}.{module.name}")
