"""The judgement of a learner's answer: correct, or the misconception that it shows, or the first difference."""

from collections.abc import Callable

from course_lib.exercises.engine.compare import Difference, difference
from course_lib.exercises.engine.exercise import Exercise
from course_lib.exercises.engine.guard import MOST_OUTPUT, OutOfTime, TooMuchOutput, without_modes
from course_lib.exercises.engine.observe import LIMIT_SECONDS, Case, Observation
from course_lib.exercises.engine.result import Result
from course_lib.exercises.engine.source import unwritten


def judge(exercise: Exercise, candidate: Callable, limit: float = LIMIT_SECONDS) -> Result:
    """Run the candidate on every case and say what a tutor would. `limit` is in seconds a case."""
    with without_modes():
        return _judge(exercise, candidate, limit)


def _judge(exercise: Exercise, candidate: Callable, limit: float) -> Result:
    want = exercise.seen(exercise.reference)
    got = _run(exercise, candidate, want, limit)
    differences = [difference(g, w, exercise.rules) for g, w in zip(got, want, strict=False)]
    if len(got) == len(want) and not any(differences):
        return Result(exercise.name, "correct", f"correct on all {len(want)} cases{_labels(exercise)}.")
    open_parts = unwritten(candidate, exercise.stub, exercise.reference)
    if open_parts and (not exercise.is_class or _all_open(exercise, open_parts)):
        return Result(exercise.name, "not started", _how_to_start(exercise))
    if open_parts:
        return Result(exercise.name, "not started", f"{' and '.join(open_parts)} still to be written.")
    return _verdict(exercise, got, differences, limit)


def _run(exercise: Exercise, candidate: Callable, want: list[Observation], limit: float) -> list[Observation]:
    """The candidate on case after case; one that runs out of time, or is interrupted, is not asked again."""
    got: list[Observation] = []
    for one, expected in zip(exercise.case_list, want, strict=True):
        got.append(exercise.observe(candidate, one, _allowed(limit, expected)))
        if got[-1].raised and issubclass(got[-1].raised.type, OutOfTime | KeyboardInterrupt | TooMuchOutput):
            break
    return got


def _allowed(limit: float, expected: Observation) -> float:
    return max(limit, 20 * expected.seconds)


def _verdict(exercise: Exercise, got: list[Observation], differences: list[Difference | None], limit: float) -> Result:
    wrong_cases = [i for i, found in enumerate(differences) if found]
    name = diagnose(exercise, got, wrong_cases)
    number = wrong_cases[0]  # a misconception is at work there too, or it is not the diagnosis
    one, seen, want = exercise.case_list[number], got[number], exercise.seen(exercise.reference)[number]
    lines = ["not yet"]
    if name is not None:
        lines.append(exercise.misconceptions[name][1])
    lines.append(f"{_call(exercise, one)} {_what_happened(seen, differences[number], _allowed(limit, want))}")
    if seen.printed.strip():
        lines.append(f"It printed: {seen.printed.strip().splitlines()[-1][:80]}")
    lines.append(f"A nudge: hint({exercise.name})")
    failed = seen.raised is not None and want.raised is None
    return Result(exercise.name, "error" if failed else "wrong", "\n".join(lines), name)


def diagnose(exercise: Exercise, got: list[Observation], wrong_cases: list[int]) -> str | None:
    """The misconception that the answer shares: it agrees wherever the misconception differs from the reference.

    It has to explain the first wrong case and at least half of them all, else its sentence would miss the point. Where
    several fit, the one that explains the most.
    """
    fits: dict[str, int] = {}
    for name, (wrong, _) in exercise.misconceptions.items():
        cases, seen = _wrong_cases(exercise, wrong), exercise.seen(wrong)
        if wrong_cases[0] in cases and all(i < len(got) and _agree(got[i], seen[i], exercise) for i in cases):
            fits[name] = len(cases)
    best = max(fits, key=fits.get, default=None)
    return best if best is not None and 2 * fits[best] >= len(wrong_cases) else None


def _wrong_cases(exercise: Exercise, wrong: Callable) -> list[int]:
    pairs = zip(exercise.seen(wrong), exercise.seen(exercise.reference), strict=True)
    return [i for i, (seen, want) in enumerate(pairs) if difference(seen, want, exercise.rules)]


def _agree(got: Observation, wrong: Observation, exercise: Exercise) -> bool:
    if got.raised and wrong.raised:
        # The same error for the same reason. Where the exercise asks for that error, its words are the learner's own.
        asked = {seen.raised.type for seen in exercise.seen(exercise.reference) if seen.raised}
        same_text = got.raised.text == wrong.raised.text or got.raised.type in asked
        return got.raised.type is wrong.raised.type and same_text
    return difference(got, wrong, exercise.rules) is None


def _what_happened(seen: Observation, found: Difference, seconds: float) -> str:
    if seen.raised is None:
        return found.text
    if issubclass(seen.raised.type, OutOfTime):
        return f"did not finish in {seconds:.0f} s. Is there a loop that never ends?"
    if issubclass(seen.raised.type, TooMuchOutput):
        return f"printed more than {MOST_OUTPUT:,} characters. Is there a loop that never ends?"
    if issubclass(seen.raised.type, KeyboardInterrupt):
        return "was interrupted."
    return found.text + (f" ({seen.raised.line})" if seen.raised.line else "")


def _all_open(exercise: Exercise, open_parts: list[str]) -> bool:
    """Whether these are all the parts that a class without a single written method would have open."""

    def empty(self: object) -> None: ...

    names = [name for name, part in vars(exercise.reference).items() if callable(part)]
    nothing_written = type(exercise.name, (), dict.fromkeys(names, empty))
    return set(open_parts) >= set(unwritten(nothing_written, exercise.stub, exercise.reference))


def _how_to_start(exercise: Exercise) -> str:
    if "..." in exercise.stub:
        return "not started. Replace the ... and run the cell again."
    return "not started: this is still the version to mend. Change it and run the cell again."


def _call(exercise: Exercise, one: Case) -> str:
    text = one.text if len(one.text) <= 90 else one.text[:89] + "…"
    return f"{exercise.name}({text})"


def _labels(exercise: Exercise) -> str:
    named = [one.label for one in exercise.case_list if one.label][:3]
    if not named:
        return ""
    return ", among them " + (f"{', '.join(named[:-1])} and {named[-1]}" if len(named) > 1 else named[0])
