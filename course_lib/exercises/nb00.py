"""The warm-up exercise of notebook 00."""
import math

import torch

from course_lib.exercises.engine import case, exercise


@exercise(
    notebook="00",
    hints=[
        "Draw a square and double both of its sides. How many of the old squares fit into the new one?",
        "Each axis multiplies the count by `factor` once more. Python writes a repeated product with `**`.",
    ],
    why="Each axis multiplies the count by `factor`, whatever the others do: factor · factor · …, once per axis.",
)
def times_as_many(factor: int, axes: int) -> int:
    """How many times as many numbers a tensor holds once each axis is `factor` times as long.

    A row of numbers has one axis, a table has two, a pile of equal tables has three.
    """
    return factor**axes


times_as_many.cases(
    case("2, 2", "a table"),
    case("2, 1", "a row"),
    case("2, 3", "a pile of tables"),
    "3, 2",
    "10, 4",
    "5, 3",
    case("1, 5", "a factor of 1"),
    case("3, 0", "no axis at all: one number"),
    case("10, 10", "more than 32 bits"),
    case("3, 34", "more digits than a float keeps"),
)


@times_as_many.misconception("You added where sizes multiply: twice the rows and twice the columns make 2 · 2.")
def added(factor, axes):
    return factor * axes


@times_as_many.misconception("You stretched one axis and left the others as they were.")
def one_axis(factor, axes):
    return factor


@times_as_many.misconception("You took every tensor for a table. The exponent is the number of axes, not always 2.")
def always_a_table(factor, axes):
    return factor**2


@times_as_many.misconception("That is right when each axis doubles. Here it becomes `factor` times as long.")
def always_doubled(factor, axes):
    return 2**axes


@times_as_many.misconception("You swapped base and exponent: `factor` is multiplied by itself, once per axis.")
def swapped(factor, axes):
    return axes**factor


@times_as_many.misconception("That is how many numbers are added. Times as many counts the old ones as well.")
def only_the_new(factor, axes):
    return factor**axes - 1


@times_as_many.accepts
def as_a_loop(factor, axes):
    times = 1
    for _ in range(axes):
        times *= factor
    return times


@times_as_many.accepts
def as_a_product(factor, axes):
    return math.prod([factor] * axes)


@times_as_many.accepts
def by_building_it(factor, axes):
    return torch.empty([factor] * axes, device="meta").numel()
