"""The door to the set-up: `python3 course_lib/classroom/bootstrap.py` makes .venv ready.

Written so that any Python from 2.7 on runs it: an old one gets a sentence instead of a syntax error. What needs a
current Python starts behind the check, in installer.py. With `--exact` no other Python than the one that runs this
is used; without it, one that suits is looked for.
"""
from __future__ import print_function

import os
import subprocess
import sys

OLDEST, NEWEST = (3, 11), (3, 14)  # for these torch 2.13.0 has builds; pyproject.toml says the same


def suits(version):
    """Whether the course runs on this version of Python."""
    return OLDEST <= tuple(version[:2]) <= NEWEST


def another():
    """The name of a Python on the path that suits, or None."""
    question = "import sys; sys.exit(not %r <= sys.version_info[:2] <= %r)" % (OLDEST, NEWEST)
    with open(os.devnull, "w") as nowhere:
        for minor in range(OLDEST[1], NEWEST[1] + 1):
            name = "python3.%d" % minor
            try:
                if subprocess.call([name, "-c", question], stdout=nowhere, stderr=nowhere) == 0:
                    return name
            except OSError:  # not on the path
                pass
    return None


def refusal(version, executable):
    """The sentence for a Python that does not suit."""
    start = "py -3.%d course_lib\\classroom\\bootstrap.py" if os.name == "nt" else "make lab PYTHON=python3.%d"
    return (
        "This is Python %d.%d (%s); the course needs %d.%d to %d.%d. Install one of these from python.org or your "
        "system's packages, then name it: %s"
        % (version[0], version[1], executable, OLDEST[0], OLDEST[1], NEWEST[0], NEWEST[1], start % OLDEST[1])
    )


def main(arguments):
    """Set up with this Python, with another that suits, or not at all; returns the exit status."""
    if not suits(sys.version_info):
        other = None if "--exact" in arguments else another()
        if other:
            os.execvp(other, [other, os.path.abspath(__file__)] + arguments)
        print(refusal(sys.version_info, sys.executable), file=sys.stderr)
        return 1
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[0] = os.path.dirname(os.path.dirname(here))  # instead of this folder
    from course_lib.classroom import installer

    return installer.main(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
