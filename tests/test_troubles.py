"""What can stop the set-up: each failure ends in one sentence that says what to do."""
import errno
import os
import sys
from pathlib import Path

import pytest
from sentences import sentence

from course_lib.classroom import installer, troubles
from course_lib.classroom.troubles import Trouble

ROOT = Path(installer.__file__).parents[2]
HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"


PIP_SAYS = {
    "the network is away": (
        "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(...)': /anyio/\n"
        "ERROR: No matching distribution found for anyio==4.16.0\n",
        "connect to the network",
    ),
    "a download stops": ("pip._vendor.urllib3.exceptions.ReadTimeoutError: Read timed out.", "connect to the network"),
    "a certificate is replaced": ("connection broken by 'SSLError(CERTIFICATE_VERIFY_FAILED)'", "PIP_CERT"),
    "no build for this machine": ("ERROR: No matching distribution found for torch==2.13.0\n", "torch==2.13.0"),
    "no space": ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "is full"),
    "over quota": ("OSError: [Errno 122] Disk quota exceeded", "is full"),
    "no ensurepip": ("The environment was not created because ensurepip is not available.", f"python{HERE}-venv"),
    "not writable": ("OSError: [Errno 30] Read-only file system: '/course/build'", "/course/build cannot be written"),
    "anything else": ("Collecting\n  ERROR: Cannot install numpy\nnotice: a new pip", "ERROR: Cannot install numpy."),
    "nothing at all": ("", "no reason was given"),
}


@pytest.mark.parametrize("what", PIP_SAYS)
def test_each_failure_is_explained(what: str, tmp_path: Path) -> None:
    output, told = PIP_SAYS[what]
    assert told in sentence(troubles.explain(output, tmp_path))


def test_a_failing_command_becomes_its_sentence(tmp_path: Path) -> None:
    failing = "import sys; print('ERROR: [Errno 28] No space left on device'); sys.exit(2)"
    with installer.one_at_a_time(tmp_path), pytest.raises(Trouble, match="is full"):
        installer.follow([sys.executable, "-c", failing], tmp_path)


def test_pip_itself_says_what_we_listen_for(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9")  # nobody listens there
    monkeypatch.setenv("PIP_RETRIES", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    pip = [sys.executable, "-m", "pip", "install", "--target", str(tmp_path / "x"), "no-such-package-at-all==1"]
    with installer.one_at_a_time(tmp_path):
        with pytest.raises(Trouble, match="connect to the network"):
            installer.follow(pip, tmp_path)
        with pytest.raises(Trouble, match="no-such-package-at-all==1"):
            installer.follow([*pip, "--no-index"], tmp_path)


def test_too_little_space_is_seen_before_anything_is_made(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(troubles, "NEEDED", 2**62)
    with pytest.raises(Trouble) as told:
        installer.set_up(tmp_path)
    assert "too full" in sentence(str(told.value))
    assert not (tmp_path / ".venv").exists()


def test_an_intel_mac_and_a_python_of_32_bits_are_refused(monkeypatch) -> None:
    monkeypatch.setattr(troubles.sys, "maxsize", 2**31 - 1)
    with pytest.raises(Trouble, match="64-bit"):
        troubles.check_machine()
    monkeypatch.setattr(troubles.platform, "system", lambda: "Darwin")
    monkeypatch.setattr(troubles.platform, "machine", lambda: "x86_64")
    with pytest.raises(Trouble) as told:
        troubles.check_machine()
    assert "Intel Mac" in sentence(str(told.value))


@pytest.mark.parametrize("missing", ["venv", "ensurepip"])
def test_a_python_without_venv_is_told_the_package(missing: str, monkeypatch) -> None:
    find = troubles.importlib.util.find_spec
    monkeypatch.setattr(troubles.importlib.util, "find_spec", lambda name: None if name == missing else find(name))
    with pytest.raises(Trouble) as told:
        troubles.check_machine()
    assert f"python{HERE}-venv" in sentence(str(told.value))


@pytest.mark.parametrize(
    ("fails", "told"),
    [
        (Trouble("A sentence that says what to do, and no more."), "A sentence that says"),
        (PermissionError(errno.EACCES, "Permission denied", "/course/build"), "/course/build cannot be written"),
        (OSError(errno.ENOSPC, "No space left on device"), "is full"),
        (KeyboardInterrupt(), "Run the same command again"),
    ],
)
def test_the_command_ends_with_one_sentence(fails: BaseException, told: str, monkeypatch, capsys) -> None:
    def fail(*_: object, **__: object) -> None:
        raise fails

    monkeypatch.setattr(installer, "set_up", fail)
    assert installer.main([]) != 0
    assert told in sentence(capsys.readouterr().err)


def test_nothing_asks_for_the_rights_of_an_administrator() -> None:
    for path in (ROOT / "Makefile", ROOT / ".ci" / "run", *Path(installer.__file__).parent.glob("*.py")):
        assert "sudo" not in path.read_text(encoding="utf-8")
