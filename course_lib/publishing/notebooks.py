"""What the tools that publish notebooks share: finding them, running them, and writing files whole or not at all."""
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import nbformat
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "notebooks"
Kernel = TypeVar("Kernel")
CELL_SECONDS = 300  # a cell that runs longer hangs; a whole notebook is to take under 20 s


class NotebookError(Exception):
    """A notebook cannot be published. The message is one sentence that says where and why."""


def find_notebooks(names: list[str], folder: Path = NOTEBOOKS) -> list[Path]:
    """The notebooks that are meant by paths or numbers ("03"); all of the course where no name is given."""
    if not names:
        return sorted(folder.glob("[0-9][0-9]_*.ipynb"))
    found = []
    for name in names:
        matches = [Path(name)] if name.endswith(".ipynb") else sorted(folder.glob(f"{name}_*.ipynb"))
        if not matches or not matches[0].is_file():
            raise NotebookError(f"There is no notebook {name!r}; give a path that ends in .ipynb, or a number like 03.")
        found += matches
    return found


def read_notebook(path: Path) -> NotebookNode:
    """The notebook in the file, in nbformat 4.5 (older ones are upgraded)."""
    try:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
    except Exception as error:  # JSON, encoding and schema errors share no base class
        raise NotebookError(f"{path.name} is not a notebook: {first_line(error)}") from None
    return notebook


def write_atomically(path: Path, text: str) -> None:
    """Write beside the file and rename, so that it is either the old one or the new one, whatever happens."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=".new")
    try:
        with open(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, beside)
        else:
            os.chmod(beside, 0o644)
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise


@contextmanager
def learners_environment() -> Iterator[dict[str, str]]:
    """The environment for a kernel that is nobody's: no settings, no history, nothing solved, Python's own warnings."""
    personal = ("PYTHONWARNINGS", "PYTHONSTARTUP", "PYTHONDEVMODE", "MPLBACKEND")
    with tempfile.TemporaryDirectory(prefix="course-", ignore_cleanup_errors=True) as scratch:
        kept = {name: value for name, value in os.environ.items() if name not in personal}
        logbook, settings = Path(scratch, "progress.json"), Path(scratch, "ipython")
        yield kept | {"COURSE_PROGRESS": str(logbook), "IPYTHONDIR": str(settings)}


def execute(notebook: NotebookNode, name: str, folder: Path) -> None:
    """Run all cells in place, from top to bottom, in a new kernel of this Python that works in `folder`.

    Raises NotebookError for an error in a cell that is not tagged `raises-exception`, for output on stderr, and for a
    kernel that dies or hangs.
    """
    from nbclient.exceptions import CellExecutionError

    position = 0

    def note(cell: NotebookNode, cell_index: int) -> None:
        nonlocal position
        position = cell_index

    try:
        start_patiently(lambda: _run_in_new_kernel(notebook, folder, note))
    except CellExecutionError as error:
        message = f"{error.ename}: {first_line(error.evalue)}" if error.evalue else error.ename
        raise NotebookError(f"{where(notebook, name, position)} raises {message}") from None
    except Exception as error:  # a kernel can die in many ways
        raise NotebookError(f"{where(notebook, name, position)} ends the run: {first_line(error)}") from None
    for index, cell in enumerate(notebook.cells):
        for output in cell.get("outputs", ()):
            if output.get("name") == "stderr":
                message = first_line(output.text)
                raise NotebookError(f"{where(notebook, name, index)} writes to stderr, which learners see: {message}")


def start_patiently(start: Callable[[], Kernel]) -> Kernel:
    """Call `start`, which starts a kernel, and twice more where the kernel dies before it answers.

    A kernel is told to listen on ports that were free a moment ago; somebody else may have taken one of them since.
    """
    for _ in range(2):
        try:
            return start()
        except RuntimeError as error:
            if "before replying" not in str(error) and "timed out" not in str(error):
                raise
    return start()


def _run_in_new_kernel(notebook: NotebookNode, folder: Path, note: Callable[..., None]) -> None:
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient

    manager = AsyncKernelManager(kernel_name="python3", kernel_spec_manager=_this_python())
    client = NotebookClient(
        notebook, km=manager, timeout=CELL_SECONDS, record_timing=False, store_widget_state=False,
        shutdown_kernel="immediate", on_cell_execute=note, resources={"metadata": {"path": str(folder)}},
    )  # fmt: skip
    with learners_environment() as environment:
        client.execute(env=environment, stderr=subprocess.DEVNULL, cleanup_kc=True)


def where(notebook: NotebookNode, name: str, index: int) -> str:
    """A cell as an author finds it: notebook, position and first line."""
    return f"{name}, cell {index + 1} ({first_line(notebook.cells[index].source)!r})"


def first_line(message: object, limit: int = 160) -> str:
    """The first line of a message that says something, cut at `limit` characters."""
    lines = [line.strip() for line in str(message).splitlines() if line.strip()]
    text = lines[0] if lines else type(message).__name__
    return text if len(text) <= limit else text[: limit - 1] + "…"


def run_tool(main, arguments: list[str] | None = None) -> None:
    """Run a command line's `main`; trouble with a notebook or a file ends it with a sentence and exit status 1."""
    try:
        sys.exit(main(arguments))
    except (NotebookError, OSError) as error:
        sys.exit(str(error))


def _this_python():
    """Kernel specs that know only the Python that runs this, whatever kernels the user has registered."""
    import ipykernel.kernelspec
    from jupyter_client.kernelspec import KernelSpecManager

    class ThisPython(KernelSpecManager):
        def get_kernel_spec(self, kernel_name: str):
            return self.kernel_spec_class(
                resource_dir=ipykernel.kernelspec.RESOURCES, **ipykernel.kernelspec.get_kernel_dict()
            )

    return ThisPython()
