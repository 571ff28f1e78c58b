"""What is asked of a function that is handed over in order to be called."""
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


def require_takes(caller: str, name: str, function: Callable[..., object], *arguments: str) -> None:
    """Raise one TypeError sentence if `function`, the argument `name` of `caller`, does not take these arguments."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        called = f"{name}({', '.join(arguments)})"
        raise TypeError(f"{caller}(): {name} is called as {called}, and does not take that: {error}.") from None


_COLLECTORS = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
