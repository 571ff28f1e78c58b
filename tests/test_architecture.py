"""The house stands: imports never run upward, importing is light, files are small, and public things are documented."""
import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import course_lib
from course_lib.publishing.notebooks import ROOT, find_notebooks, read_notebook

PACKAGE = ROOT / "course_lib"
TEACHING = {"chapters", "exercises", "explorers", "figures", "lazy", "lesson", "logbook"}
PUBLISHING = {"classroom", "publishing"}
BASE = {"checked", "calls"}  # what the subject floor stands on: these cannot be checked by themselves
SUBJECT_MAY_IMPORT = {"beartype", "course_lib", "einops", "jaxtyping", "numpy", "psutil", "torch", "tqdm"}
LINES, LINES_OF_EXERCISES = 300, 600  # a file of exercises is read one exercise at a time
EXERCISES = re.compile(r"\.nb\d\d$")
MACHINE_PATH = re.compile(r"(?<![\w.$~])/(work|root|tmp|home|Users)/\w")
SOURCES = sorted(PACKAGE.rglob("*.py"))
MODULES = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in SOURCES}


def floor(module: str) -> int:
    """1 subject, 2 teaching, 3 publishing; a file that nobody has placed is a subject's, the floor that may least."""
    _, _, inside = module.partition(".")
    name = inside.split(".")[0]
    return 3 if name in PUBLISHING else 2 if name in TEACHING or not name else 1


def imports(source: str, module: str = "course_lib.x") -> Iterator[str]:
    """Every module that a source imports: at the top, inside functions, or by a name handed to import_module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = module.split(".")[: -node.level] if node.level else []
            origin = ".".join([*package, *filter(None, [node.module])])
            yield from (_home_of(origin, alias.name) for alias in node.names)
        elif isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func):
            yield from (a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str))


def _home_of(origin: str, name: str) -> str:
    """Where `from origin import name` leads: a submodule, or the home of a name that the package loads lazily."""
    if origin == "course_lib" and name in course_lib._HOME_OF:
        return f"course_lib.{course_lib._HOME_OF[name]}"
    return f"{origin}.{name}" if f"{origin}.{name}" in MODULES else origin


def upward(source: str, module: str) -> list[str]:
    ours = (name for name in imports(source, module) if name.split(".")[0] == "course_lib")
    return [name for name in ours if floor(name) > floor(module)]


def foreign(source: str) -> set[str]:
    return {name.split(".")[0] for name in imports(source)} - SUBJECT_MAY_IMPORT - set(sys.stdlib_module_names)


@pytest.mark.parametrize("module", MODULES)
def test_imports_never_run_upward(module: str) -> None:
    assert not upward(MODULES[module].read_text(encoding="utf-8"), module)


@pytest.mark.parametrize("module", [module for module in MODULES if floor(module) == 1])
def test_the_subject_floor_is_plain_pytorch(module: str) -> None:
    assert not foreign(MODULES[module].read_text(encoding="utf-8"))


def test_a_stray_import_is_found_wherever_it_hides() -> None:
    hidden = "def f():\n    from course_lib import check\n    import matplotlib.pyplot\n    import_module('IPython')"
    assert upward(hidden, "course_lib.storage") == ["course_lib.exercises"]
    assert foreign(hidden) == {"matplotlib", "IPython"}
    relative = "from ..publishing import canonical"
    assert upward(relative, "course_lib.exercises.nb01") == ["course_lib.publishing.canonical"]
    assert not upward("from course_lib import storage, check", "course_lib.publishing.canonical")


@pytest.mark.parametrize("path", find_notebooks([]), ids=lambda path: path.stem)
def test_notebooks_import_nothing_of_the_publishing_floor(path: Path) -> None:
    cells = [cell.source for cell in read_notebook(path).cells if cell.cell_type == "code"]
    code = [re.sub(r"^%.*$", "", source, flags=re.MULTILINE) for source in cells]  # magics are no Python
    assert not [name for source in code for name in imports(source) if floor(name) == 3 and "course_lib" in name]


def test_the_bootstrap_needs_nothing_but_python() -> None:
    todo, seen = ["course_lib.classroom.bootstrap"], set()
    while todo:
        seen.add(module := todo.pop())
        names = set(imports(MODULES[module].read_text(encoding="utf-8"), module))
        assert {name.split(".")[0] for name in names} <= {"course_lib", *sys.stdlib_module_names}, module
        todo += [name for name in names if name in MODULES and name not in seen]


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import course_lib", {"torch", "numpy", "matplotlib", "IPython"}),
        ("from course_lib import check, hint, progress, solution", {"matplotlib", "IPython"}),
        ("from course_lib import exercises; exercises()", {"matplotlib", "IPython"}),
        ("from course_lib import predict, setup, show; setup()", {"matplotlib", "IPython"}),
        ("import course_lib.figures", {"torch", "matplotlib", "IPython"}),
        ("import course_lib.publishing.pytest_plugin", {"torch", "matplotlib", "IPython"}),
    ],
)
def test_importing_is_light(statement: str, absent: set[str]) -> None:
    asked = f"{statement}\nimport sys\nprint(*sorted({absent} & set(sys.modules)))"
    ended = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, timeout=120)
    assert (ended.stdout, ended.stderr) == ("\n", "")


@pytest.mark.parametrize("module", MODULES)
def test_files_are_small(module: str) -> None:
    lines = len(MODULES[module].read_text(encoding="utf-8").splitlines())
    assert lines <= (LINES_OF_EXERCISES if EXERCISES.search(module) else LINES)


def public(body: list[ast.stmt]) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node


@pytest.mark.parametrize("module", [m for m in MODULES if not EXERCISES.search(m)])
def test_public_things_have_docstrings(module: str) -> None:
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    missing = [node.name for node in public(tree.body) if not ast.get_docstring(node)]
    assert not missing
    assert ast.get_docstring(tree) or not tree.body, "the file does not say what it is for"


def exported(module: str) -> set[str] | None:
    """What a package offers of one of its files; None for a file of its own, which offers all that is public."""
    package, _, name = module.rpartition(".")
    if package == "course_lib":
        return None
    tree = ast.parse(MODULES[package].read_text(encoding="utf-8")) if package in MODULES else ast.parse("")
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {alias.name for node in froms if (node.module or "").split(".")[-1] == name for alias in node.names}


def unchecked(source: str, offered: set[str] | None = None) -> Iterator[str]:
    """Public functions and methods with arguments that lack the decorator `checked`."""
    for node in public(ast.parse(source).body):
        if offered is not None and node.name not in offered:
            continue
        methods = node.body if isinstance(node, ast.ClassDef) else [node]
        for method in methods:
            if not isinstance(method, ast.FunctionDef) or (method.name.startswith("_") and method.name != "__init__"):
                continue
            takes_nothing = method is not node and len(method.args.args + method.args.kwonlyargs) <= 1
            decorators = {ast.unparse(decorator) for decorator in method.decorator_list}
            if not takes_nothing and "checked" not in decorators:
                yield f"{node.name}.{method.name}" if method is not node else node.name


@pytest.mark.parametrize("module", [m for m in MODULES if floor(m) == 1 and m.split(".")[1] not in BASE])
def test_the_subjects_public_functions_are_checked(module: str) -> None:
    assert not list(unchecked(MODULES[module].read_text(encoding="utf-8"), exported(module)))


def test_an_unchecked_function_is_found() -> None:
    functions = "@checked\ndef a(x): ...\ndef b(x): ...\ndef _c(x): ...\n"
    methods = "class D:\n    def e(self, x): ...\n    def f(self): ...\n    def __init__(self, x): ..."
    assert list(unchecked(functions + methods)) == ["b", "D.e", "D.__init__"]
    assert list(unchecked(functions + methods, {"D"})) == ["D.e", "D.__init__"]


def tracked() -> list[Path]:
    """The files that belong to the course: git knows them; without git, all that are not generated."""
    if shutil.which("git") and (ROOT / ".git").exists():
        listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        return [ROOT / name for name in listed.splitlines() if (ROOT / name).is_file()]
    folders = ("course_lib", "notebooks", "tests")
    return [path for name in folders for path in (ROOT / name).rglob("*") if path.suffix in {".py", ".ipynb", ".json"}]


def test_no_file_names_a_path_of_a_machine() -> None:
    found = []
    for path in tracked():
        text = path.read_bytes().decode("utf-8", errors="ignore")
        lines = (line for line in text.splitlines() if '"image/png": "' not in line)
        found += [f"{path.relative_to(ROOT)}: {match[0]}" for line in lines for match in MACHINE_PATH.finditer(line)]
    assert not [one for one in found if not one.startswith("README.md")]
