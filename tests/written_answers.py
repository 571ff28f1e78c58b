"""Answers as learners write them, judged, and held against the diagnosis that they should get."""
from types import ModuleType

from course_lib.exercises.engine.judge import judge
from course_lib.exercises.engine.result import Result

OWN = "a mistake of its own"  # wrong, but no misconception of the list


def assert_diagnosed(notebook: ModuleType, name: str, source: str, diagnosis: str | None) -> Result:
    """Judge the exercise `name`, answered by `source`. `diagnosis`: None for right, a misconception's name, or OWN."""
    scope = dict(vars(notebook))
    exec(source, scope)
    result = judge(getattr(notebook, name), scope[name])
    assert (result.status == "correct") == (diagnosis is None), result
    assert result.diagnosis == (None if diagnosis == OWN else diagnosis), result
    return result
