"""What `storage` and `timing` ask of a function that they are handed in order to call it."""
import inspect
from collections.abc import Callable


def require_no_arguments(caller: str, name: str, function: Callable[..., object]) -> None:
    """Raise one TypeError sentence if `function`, the argument `name` of `caller`, cannot be called as `function()`."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some built-in functions do not tell what they take; the call will show
        return
    try:
        signature.bind()
    except TypeError:
        needed = [p.name for p in signature.parameters.values() if p.default is p.empty and p.kind not in _COLLECTORS]
        called = getattr(function, "__name__", "")
        called = called if called.isidentifier() else name  # a lambda is called <lambda>
        raise TypeError(
            f"{caller}(): {name} is called without arguments, but needs {' and '.join(needed)}; "
            f"wrap the call: {caller}(lambda: {called}(…))."
        ) from None


_COLLECTORS = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
