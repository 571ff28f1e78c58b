"""The optimizer explorer: a surface, an optimizer, its learning rate and momentum; the path, the loss, the memory."""
import math
from collections.abc import Callable
from functools import cache

import torch
from matplotlib.figure import Figure
from torch.optim import Optimizer

from course_lib.explorers.base import Explorer, Nonsense, one_of, plain, script, text_of, whole_number
from course_lib.figures.optimizers import draw_paths
from course_lib.optim import SGD, AdaGrad, Adam, AdamW, RMSProp
from course_lib.surfaces import SURFACES, Descent, Surface, descend

_MAKE: dict[str, Callable[[list, float, float], Optimizer]] = {
    "SGD": lambda params, lr, momentum: SGD(params, lr, momentum=momentum),
    "AdaGrad": lambda params, lr, _: AdaGrad(params, lr),
    "RMSProp": lambda params, lr, _: RMSProp(params, lr),
    "Adam": lambda params, lr, momentum: Adam(params, lr, betas=(momentum, 0.999)),
    "AdamW": lambda params, lr, momentum: AdamW(params, lr, betas=(momentum, 0.999)),
}
_MOMENTUM = {"SGD": "momentum", "Adam": "β₁", "AdamW": "β₁"}  # what the slider sets; the others have no such thing
_TENTHS = (-40, 10)  # the learning rate is 10 to so many tenths
_MOST_STEPS, _COLUMNS, _ROWS, _LEVELS, _BEYOND = 200, 66, 36, 16, 1e9


class OptimizerExplorer(Explorer):
    """A descent of `steps` steps; `value` holds its path and losses, `optimizer` what has taken it.

    `lr` is rounded to tenths of a power of ten, `momentum` (SGD's, or Adam's β₁) to hundredths. ValueError, in a
    sentence, for names that are not in the lists and for what is out of range.
    """

    _esm = script("optimizers")
    title = "Optimizer explorer"

    def __init__(
        self, surface: str = "valley", optimizer: str = "SGD", lr: float = 0.05, momentum: float = 0.0, steps: int = 40
    ) -> None:
        self._surface = SURFACES[one_of("surface", surface, SURFACES)]
        self._name = one_of("optimizer", optimizer, _MAKE)
        lr, momentum = plain(lr), plain(momentum)
        if not (isinstance(lr, int | float) and 10 ** (_TENTHS[0] / 10) <= lr <= 10 ** (_TENTHS[1] / 10)):
            raise Nonsense("lr", f"lr is {lr}; 0.0001 to 10 is asked for.")
        if not (isinstance(momentum, int | float) and 0 <= momentum <= 0.99):
            raise Nonsense("momentum", f"momentum is {momentum}; 0 to 0.99 is asked for.")
        self._tenths, self._hundredths = round(10 * math.log10(lr)), round(100 * momentum)
        self._steps, self._start = whole_number("steps", steps, 1, _MOST_STEPS), self._surface.start
        self._go()
        super().__init__()

    @property
    def lr(self) -> float:
        """The learning rate that the slider stands at."""
        return float(f"{10 ** (self._tenths / 10):.2g}")

    def do_surface(self, name: object) -> None:
        """Another surface, from its own start."""
        self._surface = SURFACES[one_of("surface", name, SURFACES)]
        self._start = self._surface.start
        self._go()

    def do_optimizer(self, name: object) -> None:
        """Another optimizer with the same settings."""
        self._name = one_of("optimizer", name, _MAKE)
        self._go()

    def do_lr(self, tenths: object) -> None:
        """Another learning rate, 10 to so many tenths."""
        self._tenths = whole_number("lr", tenths, *_TENTHS)
        self._go()

    def do_momentum(self, hundredths: object) -> None:
        """Another momentum, in hundredths."""
        self._hundredths = whole_number("momentum", hundredths, 0, 99)
        self._go()

    def do_steps(self, count: object) -> None:
        """Another number of steps."""
        self._steps = whole_number("steps", count, 1, _MOST_STEPS)
        self._go()

    def do_start(self, text: object) -> None:
        """Another start, "x, y"."""
        typed = text_of("start", text)
        try:
            x, y = (float(part) for part in typed.strip("() ").split(","))
        except ValueError:
            raise Nonsense("start", f"“{typed}” is not two numbers, as -4, 1 is.") from None
        inside = all(low <= at <= high for at, (low, high) in zip((x, y), self._ranges, strict=True))
        if not inside:
            x_span, y_span = map(_span, self._ranges)
            raise Nonsense("start", f"The picture shows x from {x_span} and y from {y_span}; start there.")
        self._start = (x, y)
        self._go()

    def drawn(self) -> dict[str, object]:
        path = [[round(x, 4), round(y, 4)] for x, y in self.value.path.tolist()[: self._kept]]
        return {
            "surfaces": [*SURFACES], "optimizers": [*_MAKE], "surface": self._surface.name, "optimizer": self._name,
            "formula": self._surface.formula, "tenths": self._tenths, "lr": f"lr = {self.lr:g}", "ends": [*_TENTHS],
            "hundredths": self._hundredths, "momentum": self._momentum() or "no momentum", "steps": self._steps,
            "start": f"{self._start[0]:g}, {self._start[1]:g}", "x": [*self._ranges[0]], "y": [*self._ranges[1]],
            "rows": _rows(self._surface), "path": path, "losses": self.value.losses.tolist()[: self._kept],
            "low": float(self._surface(torch.tensor(self._surface.lowest[0], dtype=torch.float64))),
            "lowest": [*map(list, self._surface.lowest)], "lines": self._lines(),
        }  # fmt: skip

    def facts(self) -> str:
        settings = ", ".join(filter(None, [f"lr {self.lr:g}", self._momentum()]))
        start = f"({self._start[0]:g}, {self._start[1]:g})"
        return "\n".join([f"{self._name} ({settings}) on the {self._surface.name} from {start}.", *self._lines()])

    def figure(self) -> Figure:
        return draw_paths({self._surface: {self._name: self.value.path[: self._kept].float()}})

    @property
    def _ranges(self) -> tuple[tuple[float, float], tuple[float, float]]:
        return self._surface.x_range, self._surface.y_range

    @property
    def state_bytes(self) -> int:
        """Bytes that the optimizer remembers for each float32 parameter."""
        state = next(iter(self.optimizer.state.values()), {})
        return 4 * sum(isinstance(one, torch.Tensor) and one.dim() > 0 for one in state.values())

    def _go(self) -> None:
        def make(params: list) -> Optimizer:
            self.optimizer = _MAKE[self._name](params, self.lr, self._hundredths / 100)
            return self.optimizer

        self.value: Descent = descend(self._surface, make, self._start, self._steps)
        steady = (self.value.losses.abs() < _BEYOND) & self.value.path.abs().amax(-1).lt(_BEYOND)
        self._kept = int(steady.long().cumprod(0).sum())  # points before the first that is far beyond every picture

    def _momentum(self) -> str:
        named = _MOMENTUM.get(self._name)
        return f"{named} {self._hundredths / 100:g}" if named else ""

    def _lines(self) -> list[str]:
        if self._kept <= self._steps:
            end = f"It diverges: at step {self._kept} the loss is beyond {_BEYOND:g}."
        else:
            x, y = self.value.path[-1].tolist()
            end = f"After {self._steps} steps it is at ({x:.2f}, {y:.2f}), the loss went from "
            end += f"{self.value.losses[0]:.3g} to {self.value.losses[-1]:.2g}."
        return [end, f"It remembers {self.state_bytes} B for each float32 parameter, which takes 4 B itself."]


@cache
def _rows(surface: Surface) -> list[str]:
    """The surface as rows of letters from the top, a for the lowest of 16 levels."""
    x, y = torch.linspace(*surface.x_range, _COLUMNS), torch.linspace(*reversed(surface.y_range), _ROWS)
    heights = surface(torch.stack(torch.meshgrid(x, y, indexing="xy"), dim=-1))
    low, high = heights.min(), heights.max()
    levels = (((heights - low) / (high - low)) ** 0.4 * (_LEVELS - 1)).round().int()  # finer where it is low
    return ["".join(chr(97 + level) for level in row) for row in levels.tolist()]


def _span(ends: tuple[float, float]) -> str:
    return f"{ends[0]:g} to {ends[1]:g}"
