"""What a notebook writes by hand and what course_lib offers under the same name do the same.

Each top-level function or class of a notebook whose name is public in a module of the subject floor is compared with
that one by a function in twin_comparisons.py; of an exercise, the reference is. That file also lists what is other on
purpose.
"""
import ast
import re
import symtable
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module

import pytest
import torch
from nbformat import NotebookNode
from notebook_samples import notebook_of
from test_architecture import MODULES, exported, floor, public
from twin_comparisons import COMPARISONS, DIFFERENT

from course_lib.exercises import exercises
from course_lib.publishing.notebooks import find_notebooks, read_notebook


# Finding --------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Definition:
    """A function or class that a notebook's cell defines, and the module in which its twin lives."""

    notebook: str
    cell: int  # counted from 1, as the contract's tests do
    name: str
    twin: str
    text: str  # of the cell
    source: str  # of the definition and of what it needs
    is_stub: bool

    def __str__(self) -> str:
        return f"{self.notebook}-{self.name}-cell{self.cell}"

    @property
    def mine(self) -> object:
        """What the notebook defines; of an exercise, the reference."""
        if self.is_stub:
            return exercises()[self.name].reference
        scope = {name: one.reference for name, one in exercises().items() if one.notebook == self.notebook}
        exec(compile(self.source, f"<notebook {self.notebook}>", "exec"), scope)
        return scope[self.name]

    @property
    def ours(self) -> object:
        return getattr(import_module(self.twin), self.name)


def offered() -> dict[str, str]:
    """The public functions and classes of the subject floor, each with the module to import it from."""
    found = {}
    for module, path in MODULES.items():
        if floor(module) != 1:
            continue
        names = exported(module)
        for node in public(ast.parse(path.read_text(encoding="utf-8")).body):
            if names is None or node.name in names:
                found[node.name] = module
    return found


def definitions(notebook: NotebookNode, number: str, twins: dict[str, str]) -> Iterator[Definition]:
    """The definitions of a notebook that have a twin, in order."""
    statements: list[ast.stmt] = []
    places: list[tuple[int, int, ast.stmt, bool]] = []  # cell, position, statement, is it an exercise's stub?
    for cell, one in enumerate(notebook.cells, 1):
        if one.cell_type == "code":
            body = ast.parse(re.sub(r"^[%!].*$", "", one.source, flags=re.MULTILINE)).body
            is_stub = "exercise" in one.metadata.get("tags", ())
            places += [(cell, len(statements) + i, node, is_stub) for i, node in enumerate(body)]
            statements += [ast.Pass() for _ in body] if is_stub else body
    for cell, position, node, is_stub in places:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in twins:
            source = "" if is_stub else needed(statements, position)
            text = notebook.cells[cell - 1].source
            yield Definition(number, cell, node.name, twins[node.name], text, source, is_stub)


def needed(statements: list[ast.stmt], position: int) -> str:
    """The statement and all that binds a global name which it uses: the latest before it, else the first after it."""
    taken, todo = {position}, [position]
    while todo:
        here = todo.pop()
        places = [*range(here - 1, -1, -1), *range(here + 1, len(statements))]
        for name in used(statements[here]):
            binder = next((place for place in places if name in bound(statements[place])), None)
            if binder is not None and binder not in taken:
                taken.add(binder)
                todo.append(binder)
    return "\n".join(ast.unparse(statements[place]) for place in sorted(taken))


def bound(statement: ast.stmt) -> set[str]:
    """The names that a top-level statement defines, imports or assigns."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).split(".")[0] for alias in statement.names}
    targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
    if not isinstance(statement, ast.Assign | ast.AnnAssign):
        return set()
    return {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}


def used(statement: ast.stmt) -> set[str]:
    """The global names that a statement reads; a function's own variables are none, nor is the name that it defines."""
    todo, names = [symtable.symtable(ast.unparse(statement), "<cell>", "exec")], set()
    while todo:
        scope = todo.pop()
        is_top = scope.get_type() == "module"
        names |= {s.get_name() for s in scope.get_symbols() if s.is_referenced() and (is_top or s.is_global())}
        todo += scope.get_children()
    return names - {getattr(statement, "name", None)}


# The tests ------------------------------------------------------------------------------------------------------------
OFFERED = offered()
ALL = [one for path in find_notebooks([]) for one in definitions(read_notebook(path), path.name[:2], OFFERED)]


def reason(one: Definition) -> str | None:
    """Why this definition is other than the library's on purpose, if it is."""
    found = [why for (number, name, text), why in DIFFERENT.items()
             if (number, name) == (one.notebook, one.name) and text in one.text]  # fmt: skip
    return found[0] if found else None


def compare(one: Definition) -> None:
    """Run the comparison of a definition with its twin. Raises AssertionError where they differ, or none is there."""
    assert one.name in COMPARISONS, (
        f"Cell {one.cell} of notebook {one.notebook} defines {one.name}, and so does {one.twin}. Add to "
        f'tests/twin_comparisons.py a function of (mine, ours) under @compares("{one.name}") that runs both on the '
        "same inputs; or, where the notebook's is other on purpose, list it in DIFFERENT there and say why."
    )
    COMPARISONS[one.name](one.mine, one.ours)


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook's `device = get_device()` is the CPU here, where the inputs of the comparisons are."""
    monkeypatch.setattr("course_lib.devices.get_device", lambda: torch.device("cpu"))


@pytest.mark.parametrize("one", ALL, ids=str)
def test_a_notebooks_version_does_what_the_librarys_does(one: Definition) -> None:
    if reason(one) is None:
        compare(one)
    elif one.name in COMPARISONS:
        with pytest.raises(Exception):  # noqa: B017, PT011  (a wrong version may fail in any way)
            compare(one)


def test_every_entry_is_about_something_that_exists() -> None:
    assert set(COMPARISONS) <= set(OFFERED)
    written = {path.name[:2] for path in find_notebooks([])}
    for (number, name, text), why in DIFFERENT.items():
        held = [one for one in ALL if (one.notebook, one.name) == (number, name) and text in one.text]
        assert len(held) == (number in written), f"{len(held)} definitions of {name} in {number} hold {text!r}"
        assert len(why.split()) > 4


# The mechanism, tested ------------------------------------------------------------------------------------------------
RIGHT = "class Linear(nn.Module):\n    def __init__(self, i, o):\n        super().__init__()\n        self.weight = "
FORWARD = "\n    def forward(self, x):\n        return scale * (x @ self.weight)"
HELPED = [
    "import torch\nfrom torch import nn\nscale, x = 2, 1 / 0",
    "def drawn(i, o):\n    return nn.Parameter(torch.randn(i, o) / i**0.5)",
    "%time 1\nraise SystemExit  # a cell that is not needed does not run",
    "scale = 1",
    f"{RIGHT}drawn(i, o){FORWARD}",
    "scale = 3",
]


def only(*sources: str | tuple[str, str]) -> Definition:
    (found,) = definitions(notebook_of(*sources), "99", OFFERED)
    return found


def test_a_definition_comes_with_what_it_needs_and_nothing_else() -> None:
    one = only(*HELPED)
    assert (one.cell, one.name, one.twin) == (5, "Linear", "course_lib.modules")
    assert "scale = 1" in one.source and "scale = 3" not in one.source
    assert "1 / 0" not in one.source and "raise" not in one.source
    compare(one)


@pytest.mark.parametrize("wrong", [("i**0.5", "i"), ("x @ self.weight", "-x @ self.weight"), ("self.weight", "self.w")])
def test_a_version_that_has_drifted_away_is_noticed(wrong: tuple[str, str]) -> None:
    with pytest.raises(AssertionError):
        compare(only(*(source.replace(*wrong) for source in HELPED)))


def test_a_definition_without_a_comparison_says_what_to_add(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(COMPARISONS, "Cruncher")
    with pytest.raises(AssertionError, match=r'Cell 1 of notebook 99 defines Cruncher.*@compares\("Cruncher"\)'):
        compare(only("class Cruncher: ..."))


def test_of_an_exercise_the_reference_is_compared() -> None:
    name = "contiguous_strides"
    one = only((exercises()[name].stub, "exercise"))
    assert one.is_stub and one.mine is exercises()[name].reference
    compare(one)
