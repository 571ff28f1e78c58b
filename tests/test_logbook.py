"""The logbook under odd circumstances: no plain file, a link, foreign entries, two processes at once."""

import json
import os
import subprocess
import sys

import pytest

from course_lib import logbook


def test_a_device_a_folder_and_a_pipe_are_left_alone(tmp_path, monkeypatch):
    folder, pipe = tmp_path / "folder", tmp_path / "pipe"
    folder.mkdir()
    os.mkfifo(pipe)
    for odd in (folder, pipe):
        monkeypatch.setenv("COURSE_PROGRESS", str(odd))
        assert logbook.read("solved") == {}
        assert not logbook.record("solved", "f", True)
    assert folder.is_dir()
    assert pipe.is_fifo()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["folder", "pipe"]


def test_a_link_stays_a_link_and_the_mode_stays(tmp_path, monkeypatch):
    target, link = tmp_path / "real.json", tmp_path / "link.json"
    target.write_text("{}")
    target.chmod(0o664)
    link.symlink_to(target)
    monkeypatch.setenv("COURSE_PROGRESS", str(link))
    assert logbook.record("solved", "f", True)
    assert link.is_symlink()
    assert json.loads(target.read_text()) == {"solved": {"f": True}}
    assert target.stat().st_mode & 0o777 == 0o664


def test_what_others_wrote_stays(own_logbook):
    own_logbook.write_text('{"mine": {"a": 1}, "solved": {}}')
    logbook.record("solved", "f", True)
    assert json.loads(own_logbook.read_text()) == {"mine": {"a": 1}, "solved": {"f": True}}


@pytest.mark.parametrize("content", ["[" * 100_000, '{"solved": {' + '"x": 1, ' * 200_000 + '"y": 1}}'])
def test_a_file_too_deep_or_too_large_is_set_aside_unread(own_logbook, content):
    own_logbook.write_text(content)
    assert logbook.read("solved") == {}
    assert logbook.record("solved", "f", True)
    assert json.loads(own_logbook.read_text()) == {"solved": {"f": True}}


def test_the_home_folder_is_meant_by_its_sign(monkeypatch):
    monkeypatch.setenv("COURSE_PROGRESS", "~/x.json")
    assert "~" not in str(logbook.path())


def test_a_lock_that_was_left_behind_costs_a_second(own_logbook):
    own_logbook.with_name(f"{own_logbook.name}.lock").touch()
    assert logbook.record("solved", "f", True)
    assert logbook.read("solved") == {"f": True}


def test_two_processes_lose_nothing(own_logbook):
    program = "import sys\nfrom course_lib import logbook\n"
    program += "for i in range(60): logbook.record('solved', f'{sys.argv[1]}{i}', True)"
    both = [subprocess.Popen([sys.executable, "-c", program, who]) for who in "ab"]
    assert [process.wait(60) for process in both] == [0, 0]
    assert len(logbook.read("solved")) == 120
