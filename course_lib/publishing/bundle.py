"""What decks and pages share: the lessons that go in, and the folder that comes out, whole or not at all.

The folder can be carried anywhere: fonts, styles and scripts lie in its `_static/`, nothing is fetched from elsewhere.
"""
import argparse
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from nbformat import NotebookNode

from course_lib.chapters import CHAPTERS, Chapter
from course_lib.publishing.notebooks import ROOT, NotebookError, find_notebooks, first_line, read_notebook

HERE = Path(__file__).parent
BUILD = ROOT / "build"
ABOUT = "_static/ABOUT.txt"  # also tells a folder of ours, which may be replaced, from any other
ABOUT_TEXT = """Made by course_lib from the notebooks of the course; the next build replaces this folder.

The course: text and figures CC BY 4.0, code MIT. reveal.js: MIT (reveal-LICENSE). Source Sans Pro: SIL OFL 1.1
(source-sans-LICENSE), and so is STIX Two Math. DejaVu Sans Mono: its own free licence (dejavu-LICENSE).
"""


@dataclass(frozen=True)
class Lesson:
    """A notebook that is to be published."""

    path: Path
    notebook: NotebookNode
    solved: bool = False

    @property
    def stem(self) -> str:
        return self.path.stem

    @cached_property
    def chapter(self) -> Chapter | None:
        """Its place in the course; None for a notebook that the course map does not know."""
        return next((one for one in CHAPTERS if one.filename == self.path.name), None)

    @cached_property
    def title(self) -> str:
        """Its first heading, such as "03 · Strides and views"."""
        sources = (cell.source for cell in self.notebook.cells if cell.cell_type == "markdown")
        found = next(filter(None, (re.search(r"^# +(.+?) *$", source, re.MULTILINE) for source in sources)), None)
        return found[1] if found else self.stem


@dataclass(frozen=True)
class Kind:
    """One form of the course: its name, which is its folder's, and what turns lessons into files of that folder."""

    name: str
    build: Callable[[list[Lesson], Path], None]


def load(paths: list[Path], solved: bool) -> list[Lesson]:
    """The notebooks, or their solved forms, which are executed for it."""
    if not solved:
        return [Lesson(path, read_notebook(path)) for path in paths]
    from course_lib.publishing.solutions import solved as solve

    lessons = []
    for path in paths:
        lessons.append(Lesson(path, solve(path)[0], solved=True))
        print(f"{path.name}: solved", flush=True)
    return lessons


def each(lessons: list[Lesson], make: Callable[[Lesson], object]) -> list:
    """What `make` makes of each lesson; the trouble of all of them in one NotebookError, a line each."""
    made, trouble = [], []
    for lesson in lessons:
        try:
            made.append(make(lesson))
        except NotebookError as error:
            trouble.append(str(error))
    if trouble:
        raise NotebookError("\n".join(trouble))
    return made


def templates() -> Environment:
    """The templates; text is escaped, what is HTML already comes as Markup."""
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["html"] = Markup
    return environment


def write(path: Path, text: str) -> None:
    """A text file with Unix line ends."""
    path.write_text(text, encoding="utf-8", newline="\n")


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """A folder to build in. It takes the place of `target` when all went well; else `target` stays as it was."""
    if target.exists() and not (target / ABOUT).is_file() and (not target.is_dir() or any(target.iterdir())):
        raise NotebookError(f"{target} holds something else, which would be lost: move it, or choose another folder.")
    try:
        beside = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
        try:
            made = beside / "new"
            (made / "_static").mkdir(parents=True)
            write(made / ABOUT, ABOUT_TEXT)
            yield made
            if target.exists():
                target.replace(beside / "old")
            made.replace(target)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    except OSError as error:
        reason = error.strerror or first_line(error)
        raise NotebookError(f"{target} cannot be written ({reason}): make room, or choose a folder of yours.") from None


def copy_assets(static: Path, *names: str) -> None:
    """Our own styles and scripts by name, and the fonts that they call for."""
    from matplotlib import get_data_path

    fonts = reveal() / "dist" / "theme" / "fonts" / "source-sans-pro"
    for face in ("regular", "italic", "semibold", "semibolditalic"):
        shutil.copyfile(fonts / f"source-sans-pro-{face}.woff", static / f"source-sans-pro-{face}.woff")
    shutil.copyfile(fonts / "LICENSE", static / "source-sans-LICENSE")
    dejavu = Path(get_data_path(), "fonts", "ttf")
    shutil.copyfile(dejavu / "DejaVuSansMono.ttf", static / "DejaVuSansMono.ttf")
    shutil.copyfile(dejavu / "LICENSE_DEJAVU", static / "dejavu-LICENSE")
    shutil.copyfile(_inside("ziamath") / "fonts" / "STIXTwoMath-Regular.ttf", static / "STIXTwoMath.ttf")
    for name in names:
        shutil.copyfile(HERE / "assets" / name, static / name)


def reveal() -> Path:
    """Where the sphinx-revealjs package keeps reveal.js."""
    return _inside("sphinx_revealjs") / "_static" / "revealjs"


def _inside(package: str) -> Path:
    """The folder of a package that is not imported: only files are wanted of it."""
    return Path(find_spec(package).submodule_search_locations[0])


def run(kind: Kind, arguments: list[str] | None, description: str) -> int:
    """The command line of one form of the course; returns the exit status."""
    parser = argparse.ArgumentParser(prog=f"python -m course_lib.publishing.{kind.name}", description=description)
    parser.add_argument("notebooks", nargs="*", metavar="PATH or NUMBER", help="default: all of notebooks/")
    parser.add_argument("--solved", action="store_true", help="for instructors: exercises solved, and executed")
    parser.add_argument("--into", type=Path, metavar="FOLDER", help=f"an existing folder that gets {kind.name}/")
    options = parser.parse_args(arguments)
    began, name = time.perf_counter(), f"{kind.name}_solved" if options.solved else kind.name
    if options.into is not None and not options.into.is_dir():
        raise NotebookError(f"There is no folder {options.into}: make it first, or name one that is there.")
    target = (options.into or BUILD) / name
    if options.into is None:
        _make(BUILD)
    with new_folder(target) as folder:
        lessons = load(find_notebooks(options.notebooks), options.solved)
        kind.build(lessons, folder)
    count = f"{len(lessons)} notebook{'' if len(lessons) == 1 else 's'}"
    print(f"{count} in {target}: open index.html there ({time.perf_counter() - began:.1f} s)", flush=True)
    return 0


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NotebookError(f"{folder} cannot be made ({error.strerror}): choose another with --into.") from None
