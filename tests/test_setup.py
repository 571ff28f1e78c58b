"""The set-up, without network and without an installation: which Python, what .venv is taken for, what is run."""
import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sentences import sentence

from course_lib.classroom import bootstrap, installer
from course_lib.classroom.troubles import Trouble

ROOT = Path(bootstrap.__file__).parents[2]
HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A checkout in a folder that is awkward to quote, with an environment in which three packages lie."""
    if os.name == "nt":
        pytest.skip("a shell script stands in for the environment's Python")
    root = tmp_path / "Kurs für alle"
    root.mkdir()
    (root / "requirements.txt").write_text("torch==2.13.0\n")
    (root / "pyproject.toml").write_text('[project]\nname = "x"\n[build-system]\nrequires = []\n[tool.ruff]\na = 1\n')
    site = root / ".venv" / "lib" / f"python{HERE}" / "site-packages"
    for name, version in (("torch", "2.13.0"), ("numpy", "2.4.6"), ("pip", "23.2")):
        (site / name).mkdir(parents=True)
        (site / name / "core.py").touch()
        (described := site / f"{name}-{version}.dist-info").mkdir()
        (described / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        files = [f"{name}/core.py", f"{name}/__pycache__/core.pyc", f"{described.name}/RECORD"]
        (described / "RECORD").write_text("".join(f"{file},,\n" for file in files))
    installer.scripts_of(root).mkdir()
    answers = f'case "$*" in *pip*) echo pip 23.2;; *) echo {HERE};; esac'
    installer.python_of(root).write_text(f"#!/bin/sh\n{answers}\n")
    installer.python_of(root).chmod(0o755)
    return root


@pytest.fixture
def ready(course: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, after a set-up that went well."""
    installer.log_of(course).parent.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(installer, "follow", lambda command, root: None)
        installer.install(course)
    assert installer.state_of(course) == "ready"
    return course


def site(root: Path) -> Path:
    return installer.packages_of(root)[0]


# ---- which Python

SOURCE = Path(bootstrap.__file__).read_text(encoding="utf-8")


def test_an_old_python_can_read_the_bootstrap() -> None:
    tree = ast.parse(SOURCE, feature_version=(3, 4))  # the oldest grammar that Python can still check
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert not [function for function in functions if function.returns or function.args.kwonlyargs]
    assert not [argument for function in functions for argument in function.args.args if argument.annotation]
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr | ast.Starred | ast.Nonlocal)]
    assert SOURCE.isascii(), "Python 2 reads no other letters without a declaration"


def old_pythons() -> Iterator[str]:
    for name in ("python2", "python2.7", *(f"python3.{minor}" for minor in range(4, 11))):
        if (found := shutil.which(name)) and subprocess.run([found, "-c", ""], capture_output=True).returncode == 0:
            yield found


def test_old_pythons_on_this_machine_print_the_sentence() -> None:
    for python in old_pythons():
        ended = subprocess.run([python, bootstrap.__file__, "--exact"], capture_output=True, text=True)
        assert ended.returncode == 1
        assert "the course needs 3.11 to 3.14" in sentence(ended.stderr)


@pytest.mark.parametrize("version", [(2, 7, 18), (3, 6, 15), (3, 10, 13), (3, 15, 0), (4, 0, 0)])
def test_a_python_that_does_not_suit_is_refused(version, monkeypatch, capsys) -> None:
    monkeypatch.setattr(bootstrap.sys, "version_info", version)
    assert bootstrap.main(["--exact"]) == 1
    assert f"This is Python {version[0]}.{version[1]} (" in sentence(capsys.readouterr().err)


def test_the_range_of_pythons_is_pyprojects(monkeypatch) -> None:
    assert bootstrap.suits((*bootstrap.OLDEST, 0)) and bootstrap.suits((*bootstrap.NEWEST, 9))
    oldest, newest = bootstrap.OLDEST, (bootstrap.NEWEST[0], bootstrap.NEWEST[1] + 1)
    wanted = f'requires-python = ">={oldest[0]}.{oldest[1]},<{newest[0]}.{newest[1]}"'
    assert wanted in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


@pytest.mark.skipif(os.name == "nt", reason="shell scripts stand in for Pythons")
def test_another_python_is_found_and_used(tmp_path, monkeypatch) -> None:
    for name, status in (("python3.11", 1), ("python3.12", 0), ("python3.13", 0)):  # 3.11: a shim without a Python
        (tmp_path / name).write_text(f"#!/bin/sh\nexit {status}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(bootstrap.sys, "version_info", (3, 9, 2))
    started = []

    def become(name: str, command: list[str]) -> None:
        started.append(command)
        raise SystemExit  # as a program that has been replaced does not go on

    monkeypatch.setattr(bootstrap.os, "execvp", become)
    with pytest.raises(SystemExit):
        bootstrap.main([])
    assert started == [["python3.12", str(Path(bootstrap.__file__).absolute())]]


# ---- what .venv is


def test_no_environment(tmp_path: Path) -> None:
    assert installer.state_of(tmp_path) == "none"


def test_ruff_settings_and_own_packages_leave_it_ready(ready: Path) -> None:
    settings = ready / "pyproject.toml"
    settings.write_text(settings.read_text().replace("a = 1", "a = 2"))
    (site(ready) / "pandas").mkdir()
    (site(ready) / "pip-23.2.dist-info").rename(site(ready) / "pip-26.0.dist-info")
    assert installer.state_of(ready) == "ready"


@pytest.mark.parametrize(
    ("file", "more"), [("requirements.txt", "einops==0.8.2\n"), ("pyproject.toml", "[project.urls]\n")]
)
def test_new_requirements_are_added(ready: Path, file: str, more: str) -> None:
    with (ready / file).open("a") as changed:
        changed.write(more)
    assert installer.state_of(ready) == "usable"


def test_an_uninstalled_package_is_added(ready: Path) -> None:
    shutil.rmtree(site(ready) / "numpy")
    shutil.rmtree(site(ready) / "numpy-2.4.6.dist-info")
    assert installer.state_of(ready) == "usable"


@pytest.mark.parametrize("content", [None, "", '{"root"', "[]", "null", "{}"])
def test_an_environment_without_a_good_stamp_is_completed(ready: Path, content: str | None) -> None:
    installer.stamp_of(ready).unlink() if content is None else installer.stamp_of(ready).write_text(content)
    assert installer.state_of(ready) == "usable"


def lose_a_folder(root: Path) -> None:
    shutil.rmtree(site(root) / "torch")


def lose_a_file(root: Path) -> None:
    (site(root) / "torch" / "core.py").unlink()
    installer.stamp_of(root).unlink()


def stop_in_the_middle(root: Path) -> None:
    (site(root) / "torch-2.13.0.dist-info" / "RECORD").unlink()
    installer.stamp_of(root).unlink()


def lose_the_python(root: Path) -> None:
    installer.python_of(root).unlink()


def lose_pip(root: Path) -> None:
    installer.python_of(root).write_text(f'#!/bin/sh\ncase "$*" in *pip*) exit 1;; esac\necho {HERE}\n')
    installer.stamp_of(root).unlink()


def replace_the_python(root: Path) -> None:
    installer.python_of(root).write_text("#!/bin/sh\necho 3.13\n" if HERE != "3.13" else "#!/bin/sh\necho 3.12\n")


def age_the_python(root: Path) -> None:
    installer.python_of(root).write_text("#!/bin/sh\necho 3.9\n")
    installer.stamp_of(root).unlink()


def put_a_file_there(root: Path) -> None:
    shutil.rmtree(root / ".venv")
    (root / ".venv").touch()


DAMAGE = [lose_a_folder, lose_a_file, stop_in_the_middle, lose_the_python, lose_pip, replace_the_python,
          age_the_python, put_a_file_there]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_seen_and_the_environment_made_anew(ready: Path, damage, monkeypatch, capsys) -> None:
    damage(ready)
    assert installer.state_of(ready) == "broken"
    commands = []
    monkeypatch.setattr(installer, "follow", lambda command, root: commands.append(command))
    monkeypatch.setattr(installer, "install", lambda root: None)
    installer.set_up(ready)
    assert [command[1:4] for command in commands] == [["-I", "-m", "venv"]]
    assert not (ready / ".venv").exists(), "the damaged one is gone"
    assert "anew" in capsys.readouterr().out


def test_a_moved_checkout_gets_a_new_environment(ready: Path) -> None:
    moved = ready.rename(ready.with_name("elsewhere"))
    assert installer.state_of(moved) == "broken"


def test_a_python_that_was_named_is_the_one_that_is_used(ready: Path) -> None:
    assert installer.state_of(ready, HERE) == "ready"
    assert installer.state_of(ready, "3.99") == "broken"


# ---- what is run


def test_the_second_time_nothing_is_run(ready: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(installer, "follow", lambda *_: pytest.fail("nothing is to be done"))
    installer.set_up(ready)
    assert capsys.readouterr() == ("", "")


def test_installing_stays_inside_the_environment(course: Path, monkeypatch) -> None:
    commands = []
    monkeypatch.setattr(installer, "follow", lambda command, root: commands.append(command))
    installer.set_up(course)
    pinned, editable = commands
    assert pinned[-2:] == ["-r", "requirements.txt"]
    assert editable[-4:] == ["--no-deps", "--no-build-isolation", "-e", "."]
    assert {command[0] for command in commands} == {str(installer.python_of(course))}
    assert installer.state_of(course) == "ready"


def test_a_set_up_that_fails_leaves_no_stamp(ready: Path, monkeypatch) -> None:
    def fail(command: list[str], root: Path) -> None:
        raise Trouble("no network")

    monkeypatch.setattr(installer, "follow", fail)
    (ready / "requirements.txt").write_text("torch==2.13.1\n")
    with pytest.raises(Trouble):
        installer.set_up(ready)
    assert installer.state_of(ready) == "usable"
    assert not installer.stamp_of(ready).exists()


def test_the_users_pip_settings_hold_except_for_installs_outside(course: Path, monkeypatch) -> None:
    monkeypatch.setenv("PIP_USER", "1")
    monkeypatch.setenv("PIP_INDEX_URL", "http://index.example")
    asked = "import os; print(os.environ['PIP_USER'], os.environ['PIP_INDEX_URL'])"
    with installer.one_at_a_time(course):
        installer.follow([sys.executable, "-c", asked], course)
    assert installer.log_of(course).read_text() == "0 http://index.example\n"


@pytest.mark.parametrize(
    ("line", "news"),
    [
        ("  Downloading torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl (178.4 MB)", "torch"),
        ("  Downloading https://index.example/x/nvidia_cudnn-9.whl (1.2 GB)", "(1.2 GB)"),
        ("  Downloading six-1.17.0-py2.py3-none-any.whl (11 kB)", None),
        ("  Downloading matplotlib-3.11.2-cp311-cp311-manylinux_2_28_x86_64.whl (8.7 MB)", None),
        ("Installing collected packages: torch, numpy, einops", "3 packages"),
        ("Installing collected packages: course_lib", None),
        ("WARNING: Retrying (Retry(total=4, connect=None)) after connection broken by 'X'", "tries again"),
        ("", None),
    ],
)
def test_progress_is_short(line: str, news: str | None) -> None:
    said = installer.progress(line)
    assert said is None if news is None else news in said


def test_the_stamp_is_readable(ready: Path) -> None:
    stamp = json.loads(installer.stamp_of(ready).read_text())
    assert stamp["python"] == HERE
    assert stamp["root"] == str(ready)
    assert f"lib/python{HERE}/site-packages/torch" in stamp["holds"]
