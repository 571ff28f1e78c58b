"""Notebooks in canonical form: a diff shows what an author changed, and a second run changes no byte."""
import base64
import io
import re
import subprocess
import sys
from copy import deepcopy
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output
from notebook_samples import PNG, notebook_of
from PIL import Image

from course_lib.exercises import exercises
from course_lib.publishing import canonical as tool
from course_lib.publishing.canonical import IGNORED, as_text, canonical, main, republish, same_picture
from course_lib.publishing.notebooks import (
    NotebookError,
    find_notebooks,
    read_notebook,
    start_patiently,
    write_atomically,
)

CLOCK = "import time\ntime.perf_counter_ns()"
BUSY = [
    "print('a')\nprint('b', flush=True)\nprint('c')",
    (CLOCK, IGNORED),
    ("object().missing", "raises-exception"),
    f"from IPython.display import display\ndisplay({{'image/png': '{PNG}', 'text/plain': 'a dot'}}, raw=True)",
    "import ipywidgets\nipywidgets.IntSlider()",
    "import os\nos.path.basename(os.getcwd()), 'COURSE_PROGRESS' in os.environ, 'PYTHONWARNINGS' in os.environ",
]


def write(path: Path, notebook: NotebookNode) -> Path:
    nbformat.write(notebook, path)
    return path


def outputs_of(path: Path) -> list[list[NotebookNode]]:
    return [cell.outputs for cell in read_notebook(path).cells if cell.cell_type == "code"]


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A notebook with every kind of output, executed twice: the first run's file, and beside it the second's."""
    path = write(tmp_path_factory.mktemp("room") / "busy.ipynb", notebook_of(*BUSY))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONWARNINGS", "error")
        assert main([str(path)]) == 0
    path.with_suffix(".first").write_bytes(path.read_bytes())
    assert main([str(path)]) == 0
    return path


def test_a_second_run_changes_no_byte(busy: Path) -> None:
    assert busy.with_suffix(".first").read_bytes() == busy.read_bytes()


def test_what_is_stored(busy: Path) -> None:
    merged, measured, error, picture, widget, place = outputs_of(busy)
    assert [output.text for output in merged] == ["a\nb\nc\n"]
    assert measured[0].data["text/plain"].isdigit()
    assert error[0].traceback == ["AttributeError: 'object' object has no attribute 'missing'"]
    assert picture[0].data == {"image/png": PNG + "\n", "text/plain": "a dot"}
    assert list(widget[0].data) == ["text/plain"]
    assert place[0].data["text/plain"] == f"('{busy.parent.name}', True, False)"


def test_the_file_is_valid_sorted_and_says_nothing_of_this_machine(busy: Path) -> None:
    text = busy.read_text(encoding="utf-8")
    notebook = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    assert text.endswith("}\n")
    assert text == as_text(canonical(notebook))
    assert notebook.metadata == tool.NOTEBOOK_METADATA
    assert {key for cell in notebook.cells for key in cell.metadata} == {"tags", "measured_from"}
    assert [cell.execution_count for cell in notebook.cells] == [*range(1, 7)]
    assert sys.version.split()[0] not in text


def test_nothing_but_the_notebook_is_left_behind(busy: Path) -> None:
    assert sorted(path.name for path in busy.parent.iterdir()) == ["busy.first", "busy.ipynb"]


def test_editing_one_cell_changes_that_cell_alone(tmp_path: Path) -> None:
    before = canonical(notebook_of("1", "2", "2", "3"))
    after = canonical(notebook_of("1", "2", "2", "4"))
    ids = [[cell.id for cell in notebook.cells] for notebook in (before, after)]
    assert ids[0][:3] == ids[1][:3]
    assert ids[0][3] != ids[1][3]
    assert len(set(ids[0])) == 4


def test_metadata_of_editors_goes_and_ours_stays() -> None:
    slide = {"slideshow": {"slide_type": "slide"}}
    cell = new_markdown_cell("text", metadata=slide | {"collapsed": True, "trusted": True})
    code = new_code_cell("1", metadata={"tags": ["exercise"], "execution": {"iopub.status.idle": "now"}})
    notebook = nbformat.v4.new_notebook(cells=[cell, code], metadata={"widgets": {"state": {}}, "authors": []})
    got = canonical(notebook)
    assert [dict(cell.metadata) for cell in got.cells] == [slide, {"tags": ["exercise"]}]
    assert got.metadata == tool.NOTEBOOK_METADATA


def test_streams_merge_only_where_nothing_stands_between() -> None:
    notebook = notebook_of("1")
    stream = [new_output("stream", text=letter) for letter in "abc"]
    notebook.cells[0].outputs = [stream[0], stream[1], new_output("display_data", {"text/plain": "-"}), stream[2]]
    got = canonical(notebook).cells[0].outputs
    assert [output.get("text") for output in got] == ["ab", None, "c"]


@pytest.fixture(scope="module")
def clock(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = write(tmp_path_factory.mktemp("clock") / "clock.ipynb", notebook_of("a = 1", (CLOCK, IGNORED), "b = 2"))
    return republish(path)


@pytest.mark.parametrize(
    ("edited", "kept"),
    [({}, True), ({2: "b = 3"}, True), ({0: "a = 2"}, False), ({1: CLOCK + "\n"}, True), ({1: f"a\n{CLOCK}"}, False)],
    ids=["nothing", "a later cell", "an earlier cell", "only blanks", "the cell itself"],
)
def test_a_measured_output_stays_while_its_code_does(
    tmp_path: Path, clock: str, edited: dict[int, str], kept: bool
) -> None:
    notebook = nbformat.reads(clock, as_version=4)
    for index, source in edited.items():
        notebook.cells[index].source = source
    again = nbformat.reads(republish(write(tmp_path / "clock.ipynb", notebook)), as_version=4)
    assert (again.cells[1].outputs == notebook.cells[1].outputs) is kept


def png(colour: tuple[int, int, int], size: int = 4, level: int = 6) -> str:
    data = io.BytesIO()
    Image.new("RGB", (size, size), colour).save(data, "PNG", compress_level=level)
    return base64.b64encode(data.getvalue()).decode()


def test_pictures_are_compared_by_what_the_eye_sees() -> None:
    blue = png((0, 114, 178))
    assert blue != png((0, 114, 178), level=0)
    assert same_picture(blue, png((0, 114, 178), level=0))
    assert same_picture(blue, png((0, 118, 178)))
    assert not same_picture(blue, png((0, 119, 178)))
    assert not same_picture(blue, png((0, 114, 178), size=5))
    assert not same_picture(blue, "not a picture")


def test_a_picture_that_looks_the_same_keeps_its_bytes(busy: Path, tmp_path: Path) -> None:
    notebook = notebook_of(BUSY[3])
    repacked = base64.b64encode(base64.b64decode(PNG) + b"trailing bytes").decode()
    notebook.cells[0].outputs = [new_output("display_data", {"image/png": repacked, "text/plain": "a dot"})]
    text = republish(write(tmp_path / "dot.ipynb", notebook))
    assert repacked in text


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("1 / 0", r"bad\.ipynb, cell 2 \('1 / 0'\) raises ZeroDivisionError: division by zero"),
        ("import warnings\nwarnings.warn('careful')", r"cell 2 .* writes to stderr.*careful"),
        ("import os\nos._exit(3)", r"cell 2 \('import os'\) ends the run: .*died"),
    ],
)
def test_a_run_that_fails_writes_nothing(
    tmp_path: Path, source: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "bad.ipynb", notebook_of("x = 1", source))
    before = path.read_bytes()
    assert main([str(path)]) == 1
    assert re.fullmatch(f".*{said}.*\n", capsys.readouterr().err)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_the_command_line_ends_with_one_sentence(tmp_path: Path) -> None:
    path = write(tmp_path / "bad.ipynb", notebook_of("1 / 0"))
    command = [sys.executable, "-m", "course_lib.publishing.canonical", str(path)]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert ended.returncode == 1
    assert ended.stderr == "bad.ipynb, cell 1 ('1 / 0') raises ZeroDivisionError: division by zero\n"


def test_check_names_what_would_change_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "raw.ipynb", notebook_of("1 + 1"))
    before = path.read_bytes()
    assert main(["--check", str(path)]) == 1
    said = capsys.readouterr().out
    assert "raw.ipynb: would change" in said
    assert '+   "execution_count": 1,' in said
    assert path.read_bytes() == before
    main([str(path)])
    assert main(["--check", str(path)]) == 0
    assert "raw.ipynb: unchanged" in capsys.readouterr().out


def test_stubs_come_from_the_registry(tmp_path: Path) -> None:
    name, one = next(iter(exercises().items()))
    notebook = notebook_of("from course_lib import check", (f"an old stub\n\ncheck({name})", "exercise"))
    path = write(tmp_path / "stub.ipynb", notebook)
    main([str(path)])
    stub = read_notebook(path).cells[1]
    assert stub.source == f"{one.stub}\n\ncheck({name})"
    assert stub.outputs[0].data["text/plain"].startswith(f"○ {name} — not started")


def test_a_notebook_that_fails_does_not_keep_the_others_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nobody = write(tmp_path / "stub.ipynb", notebook_of(("...\n\ncheck(nobody)", "exercise")))
    broken = tmp_path / "broken.ipynb"
    broken.write_text("{")
    good = write(tmp_path / "good.ipynb", notebook_of("1"))
    assert main([str(nobody), str(broken), str(good)]) == 1
    said = capsys.readouterr()
    assert re.match(r"stub\.ipynb, cell 1 .*'check\(nobody\)' checks none.*\nbroken\.ipynb is not a notebook", said.err)
    assert "good.ipynb: written" in said.out


def test_an_unknown_notebook_is_named() -> None:
    with pytest.raises(NotebookError, match="There is no notebook '77'"):
        main(["77"])


def test_notebooks_are_found_by_number_and_by_path(tmp_path: Path) -> None:
    for name in ("01_b.ipynb", "00_a.ipynb", "notes.ipynb"):
        (tmp_path / name).touch()
    assert [path.name for path in find_notebooks([], tmp_path)] == ["00_a.ipynb", "01_b.ipynb"]
    assert [path.name for path in find_notebooks(["01"], tmp_path)] == ["01_b.ipynb"]
    assert find_notebooks([str(tmp_path / "notes.ipynb")], tmp_path) == [tmp_path / "notes.ipynb"]


def test_an_edit_made_meanwhile_is_not_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.ipynb", notebook_of("1"))

    def edited(path: Path) -> str:
        path.write_text("edited")
        return "executed"

    monkeypatch.setattr(tool, "republish", edited)
    assert main([str(path)]) == 1
    assert "a.ipynb was edited while it ran" in capsys.readouterr().err
    assert path.read_text() == "edited"


def test_writing_is_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.ipynb"
    path.write_text("old")
    path.chmod(0o640)

    def full_disk(handle: int) -> None:
        raise OSError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full_disk)
        with pytest.raises(OSError, match="No space"):
            write_atomically(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    write_atomically(path, "new")
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o640


def test_canonical_leaves_its_argument_alone() -> None:
    notebook = notebook_of("1")
    before = deepcopy(notebook)
    canonical(notebook)
    assert notebook == before


def test_a_kernel_that_dies_before_it_answers_is_started_again() -> None:
    troubles = iter(["Kernel died before replying to kernel_info", "Kernel didn't respond: timed out"])

    def start() -> str:
        for trouble in troubles:
            raise RuntimeError(trouble)
        return "running"

    assert start_patiently(start) == "running"


DIED = RuntimeError("Kernel died before replying to kernel_info")


@pytest.mark.parametrize("error", [DIED, RuntimeError("oh"), OSError()])
def test_what_does_not_get_better_is_not_tried_for_ever(error: Exception) -> None:
    tried = []

    def start() -> None:
        tried.append(1)
        raise error

    with pytest.raises(type(error)):
        start_patiently(start)
    assert len(tried) == (3 if "replying" in str(error) else 1)
