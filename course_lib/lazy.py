"""A package whose names load when they are first asked for (PEP 562): importing it costs next to nothing."""
import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def loads_when_asked(package: str, home_of: Mapping[str, str], refusal: str) -> Callable[[str], object]:
    """The `__getattr__` of a package: `home_of` names the module of each name; what it lacks is an AttributeError.

    `refusal` is its sentence, with {name!r} for what was asked for and {known} for what there is.
    """

    def load(name: str) -> object:
        if name not in home_of:
            raise AttributeError(refusal.format(name=name, known=", ".join(home_of)))
        value = getattr(import_module(f"{package}.{home_of[name]}"), name)
        setattr(sys.modules[package], name, value)  # the next time it is simply there
        return value

    return load
