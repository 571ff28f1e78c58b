"""Fixtures that several test files share."""

import engine_samples
import pytest

from course_lib.exercises.engine.exercise import REGISTRY


@pytest.fixture(autouse=True)
def own_logbook(tmp_path, monkeypatch):
    """No test reads or writes the logbook of whoever runs it."""
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.json"))
    return tmp_path / "progress.json"


@pytest.fixture
def samples(monkeypatch):
    """The sample exercises, registered as if they belonged to the course."""
    for name, one in engine_samples.SAMPLES.items():
        monkeypatch.setitem(REGISTRY, name, one)
    return engine_samples.SAMPLES
