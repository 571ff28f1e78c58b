"""Mechanical mutants of a solution: one small change each, of the kind that a learner's slip makes.

Annotations, docstrings and the wording of errors are left alone, and so are changes that
cannot matter (the operands of + and * swapped).
"""

import ast
import copy
from collections.abc import Callable, Iterator

OPERATORS = {
    ast.Add: [ast.Sub, ast.Mult],
    ast.Sub: [ast.Add],
    ast.Mult: [ast.Add, ast.Div, ast.Pow],
    ast.Div: [ast.Mult, ast.FloorDiv],
    ast.FloorDiv: [ast.Mult, ast.Div],
    ast.Pow: [ast.Mult],
    ast.MatMult: [ast.Mult],
    ast.Mod: [ast.FloorDiv],
    ast.LShift: [ast.RShift],
    ast.RShift: [ast.LShift],
    ast.BitAnd: [ast.BitOr],
    ast.BitOr: [ast.BitAnd],
    ast.BitXor: [ast.BitOr],
}
COMPARISONS = {
    ast.Lt: [ast.LtE, ast.Gt],
    ast.LtE: [ast.Lt],
    ast.Gt: [ast.GtE, ast.Lt],
    ast.GtE: [ast.Gt],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
}
ATTRIBUTES = {
    "float32": ["float16", "float64"],
    "bfloat16": ["float16"],
    "int64": ["int32"],
    "int32": ["int16"],
    "bool": ["uint8"],
    "zeros": ["ones"],
    "ones": ["zeros"],
    "zeros_like": ["ones_like"],
    "sqrt": ["rsqrt", "abs"],
    "mul_": ["mul", "add_"],
    "add_": ["add", "sub_"],
    "mul": ["mul_"],
    "add": ["add_"],
    "stride": ["size"],
    "sum": ["prod", "mean"],
    "mean": ["sum"],
    "max": ["min"],
    "min": ["max"],
    "amax": ["amin"],
    "tril": ["triu"],
    "triu": ["tril"],
    "T": ["mT"],
    "numel": ["dim"],
    "storage_offset": ["numel"],
    "view": ["reshape"],
    "clone": ["detach"],
    "floor": ["ceil"],
    "round": ["floor"],
}
NAMES = {"max": "min", "min": "max", "any": "all", "all": "any", "reversed": "list", "sum": "max"}

Mutant = tuple[str, str]  # what was changed, the source


def mutants(source: str) -> Iterator[Mutant]:
    """Every mutant of a function's or class's source, each once."""
    tree = ast.parse(source)
    seen = {ast.unparse(tree)}
    nodes = list(ast.walk(tree))
    spared = {id(part) for node in nodes for part in _not_behaviour(node)}
    for position, node in enumerate(nodes):
        if id(node) in spared:
            continue
        for what, change in _changes(node):
            mutated = copy.deepcopy(tree)
            change(list(ast.walk(mutated))[position])
            text = ast.unparse(ast.fix_missing_locations(mutated))
            if text not in seen:
                seen.add(text)
                yield f"line {getattr(node, 'lineno', 1)}: {what}", text


def _not_behaviour(node: ast.AST) -> Iterator[ast.AST]:
    """Annotations, docstrings, the wording of an error, `strict=`; the order of a pair that is only looked through."""
    if isinstance(node, ast.keyword) and node.arg == "strict":
        yield node.value
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
        yield node.comparators[0]
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        yield from (part for argument in node.exc.args for part in ast.walk(argument))
    for name in ("annotation", "returns"):
        if getattr(node, name, None) is not None:
            yield from ast.walk(getattr(node, name))
    body = getattr(node, "body", None)
    if isinstance(body, list) and body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        yield from ast.walk(body[0])


def _changes(node: ast.AST) -> Iterator[tuple[str, Callable[[ast.AST], None]]]:
    if isinstance(node, ast.BinOp | ast.AugAssign):
        for other in OPERATORS.get(type(node.op), []):
            yield f"{type(node.op).__name__} to {other.__name__}", lambda n, o=other: setattr(n, "op", o())
    if isinstance(node, ast.BinOp):
        yield from _operands(node)
    if isinstance(node, ast.Compare):
        for other in COMPARISONS.get(type(node.ops[0]), []):
            yield f"{type(node.ops[0]).__name__} to {other.__name__}", lambda n, o=other: n.ops.__setitem__(0, o())
    if isinstance(node, ast.BoolOp):
        other = ast.Or if isinstance(node.op, ast.And) else ast.And
        yield f"to {other.__name__}", lambda n, o=other: setattr(n, "op", o())
        for i in range(len(node.values)):
            yield (
                f"condition {i} dropped",
                lambda n, i=i: n.values.__delitem__(i) if len(n.values) > 2 else _only(n, 1 - i),
            )
    if isinstance(node, ast.Constant):
        yield from _constants(node)
    if isinstance(node, ast.UnaryOp):
        yield (
            "sign or not dropped",
            lambda n: setattr(n, "op", ast.UAdd()) if not isinstance(n.op, ast.Not) else _un_not(n),
        )
    if isinstance(node, ast.Attribute):
        for other in ATTRIBUTES.get(node.attr, []):
            yield f".{node.attr} to .{other}", lambda n, o=other: setattr(n, "attr", o)
    if isinstance(node, ast.Call):
        yield from _calls(node)
    if isinstance(node, ast.Tuple) and len(node.elts) == 2 and isinstance(node.ctx, ast.Load):
        yield "pair swapped", lambda n: n.elts.reverse()
    if isinstance(node, ast.Slice):
        for part in ("lower", "upper", "step"):
            if getattr(node, part) is not None:
                yield f"slice without {part}", lambda n, p=part: setattr(n, p, None)
    if isinstance(node, ast.IfExp | ast.If | ast.While):
        yield "condition never true", lambda n: setattr(n, "test", ast.Constant(False))
        if not isinstance(node, ast.While):
            yield "condition always true", lambda n: setattr(n, "test", ast.Constant(True))
    body = getattr(node, "body", None)
    if isinstance(body, list) and not isinstance(node, ast.Module | ast.ClassDef):
        yield from _statements(body)


def _operands(node: ast.BinOp) -> Iterator[tuple[str, Callable]]:
    def keep(side: str) -> Callable[[ast.AST], None]:
        def change(n: ast.BinOp) -> None:
            kept = getattr(n, side)
            n.left, n.op, n.right = kept, ast.Add(), ast.Constant(0)

        return change

    def swap(n: ast.BinOp) -> None:
        n.left, n.right = n.right, n.left

    if not isinstance(node.op, ast.BitAnd | ast.BitOr):  # adding 0 means nothing to a set or a mask
        yield "right operand dropped", keep("left")
        yield "left operand dropped", keep("right")
    if not isinstance(node.op, ast.Add | ast.Mult | ast.BitAnd | ast.BitOr | ast.BitXor):
        yield "operands swapped", swap


def _constants(node: ast.Constant) -> Iterator[tuple[str, Callable]]:
    if isinstance(node.value, bool):
        yield f"{node.value} to {not node.value}", lambda n: setattr(n, "value", not n.value)
    elif isinstance(node.value, int | float):
        for value in {node.value + 1, node.value - 1, 0, -node.value} - {node.value}:
            yield f"{node.value} to {value}", lambda n, v=value: setattr(n, "value", v)
    elif isinstance(node.value, str):
        yield f"text {node.value!r} changed", lambda n: setattr(n, "value", n.value + "_")


def _calls(node: ast.Call) -> Iterator[tuple[str, Callable]]:
    if isinstance(node.func, ast.Name) and node.func.id in NAMES:
        yield f"{node.func.id} to {NAMES[node.func.id]}", lambda n: setattr(n.func, "id", NAMES[n.func.id])
    if len(node.args) > 1 and getattr(node.func, "id", "") != "zip":  # pairs made the other way round

        def swap(n: ast.Call) -> None:
            n.args[0], n.args[1] = n.args[1], n.args[0]

        yield "first two arguments swapped", swap
    for i, keyword in enumerate(node.keywords):
        if keyword.arg != "strict":  # of zip: only an author's safeguard
            yield f"keyword {keyword.arg} dropped", lambda n, i=i: n.keywords.pop(i)


def _statements(body: list[ast.stmt]) -> Iterator[tuple[str, Callable]]:
    for i, statement in enumerate(body):
        if (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)) or isinstance(
            statement, ast.Pass
        ):
            continue
        text = ast.unparse(statement).splitlines()[0][:50]
        yield f"dropped: {text}", lambda n, i=i: n.body.__setitem__(i, ast.Pass())
        if isinstance(statement, ast.AugAssign):

            def plain(n: ast.AST, i: int = i) -> None:
                n.body[i] = ast.Assign([n.body[i].target], n.body[i].value)

            yield f"no longer augmented: {text}", plain


def _only(node: ast.BoolOp, index: int) -> None:
    node.values = [node.values[index], node.values[index]]


def _un_not(node: ast.UnaryOp) -> None:
    node.op, node.operand = ast.Not(), ast.UnaryOp(ast.Not(), node.operand)
