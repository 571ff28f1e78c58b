"""Explorers: pictures that answer "what if". Python computes what torch says, a small JavaScript file draws it.

One file per explorer here, and one of the same name in `static/`. An explorer's file (and ipywidgets with it) loads
when the explorer is first asked for.
"""
from course_lib.lazy import loads_when_asked

_HOME_OF = {
    "EinopsExplorer": "einops",
    "FloatExplorer": "floats",
    "OptimizerExplorer": "optimizers",
    "RooflineExplorer": "roofline",
    "StrideExplorer": "strides",
}
__all__ = [*_HOME_OF]


__getattr__ = loads_when_asked(__name__, _HOME_OF, "there is no explorer {name!r}; there are {known}.")
