"""Source text of an exercise: the solution as a learner would write it, the stub, and whether a stub is untouched."""

import ast
import dis
import inspect
import sys
import textwrap
import types


def solution_of(reference: object) -> str:
    """The source of a function or class without its decorators; comments and layout stay."""
    text = textwrap.dedent(inspect.getsource(reference))
    node = ast.parse(text).body[0]
    kept = [d for d in node.decorator_list if not _is_engine_call(d)]
    begin = min((d.lineno for d in kept), default=node.lineno)
    return "\n".join(text.splitlines()[begin - 1 : node.end_lineno])


def stub_of(solution: str) -> str:
    """The solution with `...` for each body; signatures and docstrings stay."""
    lines, node = solution.splitlines(), ast.parse(solution).body[0]
    functions = [n for n in [node, *node.body] if isinstance(n, ast.FunctionDef)]
    functions = functions[:1] if isinstance(node, ast.FunctionDef) else functions
    for function in sorted(functions, key=lambda f: -f.lineno):  # from below, so that line numbers stay true
        keep = function.body[0].end_lineno if ast.get_docstring(function) else function.body[0].lineno - 1
        indent = " " * function.body[0].col_offset
        lines[keep : function.end_lineno] = [f"{indent}..."]
    return "\n".join(lines)


def unwritten(candidate: object, stub: str, reference: object) -> list[str]:
    """What of a candidate is still the stub: its empty methods, or for a function its own name."""
    begun = _codes_of_stub(stub)
    if not inspect.isclass(candidate):
        return [getattr(candidate, "__name__", "it")] if _is_open(code_of(candidate), [*begun.values()]) else []
    found = []
    for name, part in vars(reference).items():
        if not isinstance(part, types.FunctionType):
            continue
        mine = code_of(vars(candidate).get(name))
        given = mine is not None and _key(mine) == _key(code_of(part))  # the stub holds this method as it should be
        if not given and _is_open(mine, [begun[name]] if name in begun else []):
            found.append(name)
    return found


def _is_open(code: types.CodeType | None, stubs: list[types.CodeType]) -> bool:
    return code is not None and (_is_empty(code) or _key(code) in [_key(stub) for stub in stubs])


def _is_engine_call(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Call) and getattr(decorator.func, "id", "") == "exercise"


def _codes_of_stub(stub: str) -> dict[str, types.CodeType]:
    """The code objects that the stub's source compiles to, by function name."""
    try:
        module = compile(stub, "<stub>", "exec", dont_inherit=True)
    except SyntaxError:
        return {}
    found, todo = {}, [module]
    while todo:
        for constant in todo.pop().co_consts:
            if isinstance(constant, types.CodeType):
                found.setdefault(constant.co_name, constant)
                todo.append(constant)
    return found


def code_of(candidate: object | None) -> types.CodeType | None:
    """The code behind a function, its decorators taken off where they say what they wrap; None where there is none."""
    try:
        code = getattr(inspect.unwrap(candidate), "__code__", None) if callable(candidate) else None
    except Exception:  # wrappers that go round in a circle, or that raise when they are asked
        return None
    return code if isinstance(code, types.CodeType) else None


def _is_empty(code: types.CodeType) -> bool:
    """Whether a body is only a docstring and `...`, `pass`, `return`, `return None` or `raise NotImplementedError`."""
    operations, names, constants, inner = _key(code)
    if names == ("NotImplementedError",):
        constants = ()  # its message may say anything
    return (operations, names, constants, inner) in _EMPTY


def _key(code: types.CodeType) -> tuple:
    """What a body does, whatever its file, line numbers, docstring and annotations."""
    constants = [c for c in code.co_consts if not isinstance(c, types.CodeType)]
    inner = tuple(_key(c) for c in code.co_consts if isinstance(c, types.CodeType))
    spoken = constants[1:] if _has_docstring(code) else constants
    return (_operations(code), code.co_names, tuple(repr(c) for c in spoken if c is not None and c is not ...), inner)


def _has_docstring(code: types.CodeType) -> bool:
    if sys.version_info >= (3, 13):
        return bool(code.co_flags & 0x4000000)  # CO_HAS_DOCSTRING
    return bool(code.co_consts) and isinstance(code.co_consts[0], str)  # without one, the first constant is None


def _operations(code: types.CodeType) -> tuple[tuple[str, object], ...]:
    skip = {"RESUME", "NOP", "COPY_FREE_VARS", "CACHE", "EXTENDED_ARG"}
    shown = [i for i in dis.get_instructions(code) if i.opname not in skip]
    return tuple((i.opname, None if i.opname in ("LOAD_CONST", "RETURN_CONST") else i.argrepr) for i in shown)


def _bodies() -> set[tuple]:
    found = set()
    for body in ("...", "raise NotImplementedError", "raise NotImplementedError()", "raise NotImplementedError('')"):
        scope: dict[str, types.FunctionType] = {}
        exec(f"def f(x):\n    {body}", scope)
        operations, names, _, inner = _key(scope["f"].__code__)
        found.add((operations, names, (), inner))
    return found


_EMPTY = _bodies()
