"""An exercise: the reference, its cases, the misconceptions with their sentences, and other right solutions."""

import inspect
import sys
from collections.abc import Callable

from course_lib.exercises.engine.compare import FIXABLE, Rules
from course_lib.exercises.engine.observe import LIMIT_SECONDS, Case, Observation, Probe, call, observe
from course_lib.exercises.engine.source import solution_of, stub_of

REGISTRY: dict[str, "Exercise"] = {}
_PATIENCE_SECONDS = 600.0  # for code of ours: on a slow machine its first call may import for long


class Exercise:
    """Built by the decorator `exercise`; bears the name of the function or class that the learner writes.

    Called, it is its reference. `misconceptions` maps a name to (function, sentence), `alternatives` a name to another
    right solution.
    """

    def __init__(self, reference: Callable, notebook: str, hints: list[str], why: str, rules: Rules, stub: str | None):
        self.name, self.notebook, self.reference = reference.__name__, notebook, reference
        self.hints, self.why, self.rules = tuple(hints), why, rules
        self.solution = solution_of(reference)
        self.stub = stub or stub_of(self.solution)
        self.case_list: list[Case] = []
        self.misconceptions: dict[str, tuple[Callable, str]] = {}
        self.alternatives: dict[str, Callable] = {}
        self.is_class = inspect.isclass(reference)
        self._probe: Probe = call
        self._namespace = sys.modules[reference.__module__].__dict__
        self._seen: dict[Callable, list[Observation]] = {}

    def __call__(self, *args: object, **kwargs: object) -> object:
        return self.reference(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<exercise {self.name} of notebook {self.notebook}, {len(self.misconceptions)} misconceptions>"

    def cases(self, *cases: str | Case) -> None:
        """Add cases: source text of the arguments, or `case(text, label)`."""
        self.case_list += [one if isinstance(one, Case) else Case(one) for one in cases]

    def misconception(self, sentence: str) -> Callable[[Callable], Callable]:
        """Register a wrong solution with what a good tutor would say to it."""

        def register(wrong: Callable) -> Callable:
            self.misconceptions[wrong.__name__.strip("_")] = (wrong, sentence)
            return wrong

        return register

    def accepts(self, right: Callable) -> Callable:
        """Register another right solution: the tests show that it passes."""
        self.alternatives[right.__name__.strip("_")] = right
        return right

    def probe(self, drive: Probe) -> Probe:
        """Register how a candidate is driven: (candidate, args, kwargs) -> what is compared."""
        self._probe = drive
        return drive

    def observe(self, candidate: Callable, one: Case, limit: float = LIMIT_SECONDS) -> Observation:
        """What the candidate does on one case."""
        return observe(candidate, one, self._namespace, self._probe, self._parameters(), limit)

    def seen(self, ours: Callable) -> list[Observation]:
        """What the reference or a misconception does on every case; looked at once."""
        if ours not in self._seen or len(self._seen[ours]) != len(self.case_list):
            seen = [self.observe(ours, one, _PATIENCE_SECONDS) for one in self.case_list]
            if any(one.raised and not issubclass(one.raised.type, Exception) for one in seen):
                raise KeyboardInterrupt  # the stop button was pressed meanwhile: nothing of this may be remembered
            self._seen[ours] = seen
        return self._seen[ours]

    def _parameters(self) -> list[str]:
        return [] if self.is_class else [*inspect.signature(self.reference).parameters]


def exercise(
    *,
    notebook: str,
    hints: list[str],
    why: str,
    fixed: tuple[str, ...] = (),
    tolerance: tuple[float, float] | None = None,
    stub: str | None = None,
) -> Callable[[Callable], Exercise]:
    """Make the decorated function or class the reference of an exercise.

    `fixed` names what the task fixes beyond type, shape and value: "dtype", "aliasing", "contiguity", "strides",
    "requires_grad". `tolerance` is (relative, absolute). `stub` is where the learner starts, if not from an empty body.
    """
    if unknown := set(fixed) - FIXABLE:
        raise ValueError(f"exercise(): fixed names {sorted(unknown)}; it may name {sorted(FIXABLE)}.")

    def register(reference: Callable) -> Exercise:
        made = Exercise(reference, notebook, hints, why, Rules(frozenset(fixed), tolerance), stub and stub.strip("\n"))
        other = REGISTRY.get(made.name)
        if other is not None and other.reference.__module__ != reference.__module__:
            raise ValueError(f"exercise(): {made.name} is an exercise of notebook {other.notebook} already.")
        REGISTRY[made.name] = made
        return made

    return register
