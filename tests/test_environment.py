"""One environment, written down three times: pyproject.toml says what, requirements.txt which version, environment.yml
hands both to conda. They agree with each other, and what runs these tests is what they say."""
import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions, version

import pytest
import yaml
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from course_lib.publishing.notebooks import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LINES = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
PINS = [Requirement(line) for line in LINES if not line.startswith("#")]
DIRECT = [Requirement(line) for line in [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["tests"]]]
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
GPU_ONLY = re.compile(r"(nvidia|cuda|triton)\b")

HERE = {**default_environment(), "extra": ""}
LINUX = {**HERE, "sys_platform": "linux", "platform_system": "Linux", "os_name": "posix", "platform_machine": "x86_64"}
MAC = {**LINUX, "sys_platform": "darwin", "platform_system": "Darwin", "platform_machine": "arm64"}
WINDOWS = {**LINUX, "sys_platform": "win32", "platform_system": "Windows", "os_name": "nt", "platform_machine": "AMD64"}
MACHINES = {
    f"{system} {minor}": {**machine, "python_version": f"3.{minor}", "python_full_version": f"3.{minor}.4"}
    for system, machine in {"linux": LINUX, "mac": MAC, "windows": WINDOWS}.items()
    for minor in (11, 12, 13, 14)
}


def pinned_on(machine: dict[str, str]) -> dict[str, str]:
    """The version that each package gets on a machine."""
    chosen = [pin for pin in PINS if pin.marker is None or pin.marker.evaluate(machine)]
    assert len(chosen) == len({pin.name for pin in chosen}), "a package is pinned twice"
    return {canonicalize_name(pin.name): next(iter(pin.specifier)).version for pin in chosen}


def needed_on(machine: dict[str, str]) -> Iterator[Requirement]:
    """What our own dependencies need there, and what those need in turn, as far as it is installed here."""
    todo, seen = list(DIRECT), set()
    while todo:
        one = todo.pop()
        extras = {"", *one.extras}
        if str(one) in seen or GPU_ONLY.match(one.name):
            continue
        if one.marker and not any(one.marker.evaluate({**machine, "extra": extra}) for extra in extras):
            continue
        seen.add(str(one))
        yield one
        try:
            requires = [Requirement(line) for line in distribution(one.name).requires or []]
        except PackageNotFoundError:  # another platform's
            continue
        todo += [
            r for r in requires if r.marker is None or any(r.marker.evaluate({**machine, "extra": e}) for e in extras)
        ]


@pytest.mark.parametrize("name", sorted(pinned_on(HERE)))
def test_what_is_installed_is_what_is_pinned(name: str) -> None:
    installed = version(name)
    assert SpecifierSet(f"=={pinned_on(HERE)[name]}").contains(installed), f"installed is {name} {installed}"


@pytest.mark.parametrize("machine", MACHINES)
def test_everything_that_is_needed_is_pinned_and_fits(machine: str) -> None:
    pins = pinned_on(MACHINES[machine])
    needed = list(needed_on(MACHINES[machine]))
    assert len(needed) > len(DIRECT)
    assert not [str(one) for one in needed if canonicalize_name(one.name) not in pins]
    assert not [str(one) for one in needed if not one.specifier.contains(pins[canonicalize_name(one.name)], True)]


def imported(*patterns: str) -> set[str]:
    """The distributions that these sources import, by their canonical names."""
    files = (path for pattern in patterns for path in ROOT.glob(pattern))
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in files)
    found: set[str] = set()
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    homes = packages_distributions()
    return {canonicalize_name(home) for name in found - sys.stdlib_module_names for home in homes.get(name, [])}


def test_what_is_imported_is_declared() -> None:
    """What comes along with something else today may not come tomorrow."""
    learners = {canonicalize_name(Requirement(line).name) for line in PROJECT["dependencies"]}
    authors = {canonicalize_name(one.name) for one in DIRECT}
    lessons = imported("course_lib/*.py", "course_lib/exercises/**/*.py", "course_lib/figures/*.py")
    assert {"torch", "matplotlib", "ipython"} <= lessons <= {*learners, "course-lib"}
    assert {"pytest", "nbformat"} <= imported("course_lib/**/*.py", "tests/**/*.py") <= {*authors, "course-lib"}


def test_other_platforms_have_pins_of_their_own() -> None:
    assert {"colorama", "pywinpty"} <= set(pinned_on(MACHINES["windows 11"])) - set(pinned_on(MACHINES["linux 11"]))
    assert "appnope" in pinned_on(MACHINES["mac 11"])


@pytest.mark.parametrize("pin", PINS, ids=str)
def test_a_pin_is_one_public_version(pin: Requirement) -> None:
    (only,) = pin.specifier
    assert only.operator == "=="
    assert "+" not in only.version, "a local version exists on one index only"
    assert "*" not in only.version
    assert not GPU_ONLY.match(pin.name), "torch's CUDA build brings its own; the CPU build must not"
    assert pin.url is None


def test_torch_is_pinned_where_a_learner_looks() -> None:
    assert "torch==2.13.0" in PROJECT["dependencies"]
    assert pinned_on(HERE)["torch"] == "2.13.0"


def test_the_header_says_how_the_pins_are_remade() -> None:
    header = "\n".join(line for line in LINES if line.startswith("#"))
    assert "uv pip compile --universal" in header
    oldest = PROJECT["requires-python"].removeprefix(">=").split(",")[0]
    assert f"--python-version {oldest} " in header


def test_conda_installs_the_same() -> None:
    *from_conda, with_pip = CONDA["dependencies"]
    assert with_pip == {"pip": ["-r requirements.txt", "-e ."]}
    python, pip = (re.split(r"(?=[=<>])", one, maxsplit=1) for one in from_conda)
    assert pip == ["pip"], "pip has to be named, or conda warns"
    assert python[0] == "python"
    minor = python[1].removeprefix("=")
    assert SpecifierSet(PROJECT["requires-python"]).contains(f"{minor}.0")
    assert f"tested with Python {minor} " in LINES[0], "environment.yml names the Python that the pins are tested with"
    assert CONDA["channels"] == ["conda-forge", "nodefaults"]


def test_ci_runs_the_readmes_command() -> None:
    assert re.search(r"^twice make test$", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), re.MULTILINE)


def test_make_test_adds_nothing_to_pytest() -> None:
    recipe = re.search(r"^test:.*\n\t(.*)\n", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert recipe[1] == "$(IN_VENV) -m pytest", "else bare `pytest --nbval` would be another suite"


@pytest.mark.parametrize("name", [".venv/x", "build/x", "work/03.ipynb", "course_lib/__pycache__/x.pyc"])
def test_git_ignores_what_is_made(name: str) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    assert subprocess.run(["git", "check-ignore", "--quiet", name], cwd=ROOT).returncode == 0


def test_these_tests_run_in_the_environment_itself() -> None:
    assert SpecifierSet(PROJECT["requires-python"]).contains(".".join(map(str, sys.version_info[:3])))
