"""The helpers that the course's notebooks call. Three floors; an import never runs upward.

1. subject: plain PyTorch for your own work, one module a topic (`devices`, `storage`, `floats`, `timing`);
2. teaching: what makes a notebook a lesson (`lesson`, `exercises`, `figures`, `chapters`);
3. publishing: what turns notebooks into other forms (`publishing`, `classroom`); no notebook imports it.

Importing the package loads none of them: each name below loads its module when it is first used.
"""
from course_lib.lazy import loads_when_asked

_HOME_OF = {
    "setup": "lesson",
    "show": "lesson",
    "predict": "lesson",
    "check": "exercises",
    "exercises": "exercises",
    "hint": "exercises",
    "progress": "exercises",
    "solution": "exercises",
    "course_map": "chapters",
}
__all__ = [*_HOME_OF]


__getattr__ = loads_when_asked(
    __name__, _HOME_OF, "course_lib has no {name!r}; it offers {known}, and its modules by import."
)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
