"""The exercise engine. An author needs two names: `exercise` (a decorator) and `case`.

source.py    a reference's source text: solution, stub, is a stub untouched?
observe.py   a candidate on a case gives an observation: result, inputs afterwards, exception
guard.py     time limit, caught output, global state put back
freeze.py    an observation is plain data that no learner's code can influence any more
compare.py   the first difference of two observations, as a sentence
exercise.py  reference + cases + misconceptions + alternatives
judge.py     correct, a misconception, or the first difference
result.py    how the answer displays
"""

from course_lib.exercises.engine.exercise import Exercise, exercise
from course_lib.exercises.engine.observe import case

__all__ = ["Exercise", "case", "exercise"]
