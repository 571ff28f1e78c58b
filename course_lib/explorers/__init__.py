"""Explorers: pictures that answer "what if". Python computes what torch says, a small JavaScript file draws it.

One file per explorer here, and one of the same name in `static/`. An explorer's file (and ipywidgets with it) loads
when the explorer is first asked for.
"""
from importlib import import_module

_HOME_OF = {
    "EinopsExplorer": "einops",
    "FloatExplorer": "floats",
    "OptimizerExplorer": "optimizers",
    "RooflineExplorer": "roofline",
    "StrideExplorer": "strides",
}
__all__ = [*_HOME_OF]


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"there is no explorer {name!r}; there are {', '.join(__all__)}.")
    value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value
