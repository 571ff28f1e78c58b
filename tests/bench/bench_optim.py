"""A step of each optimizer against torch.optim's, as a loop and as foreach, on a model of 10 million parameters."""
from collections.abc import Iterator
from time import process_time
from timeit import repeat

import torch
from torch import nn

from course_lib.optim import SGD, AdaGrad, Adam, AdamW, RMSProp

SHAPES = [(1000, 1000), (1000,)] * 10  # ten layers: 10,010,000 parameters
PAIRS = {
    "SGD": (SGD, torch.optim.SGD, {}),
    "SGD with momentum": (SGD, torch.optim.SGD, {"momentum": 0.9}),
    "AdaGrad": (AdaGrad, torch.optim.Adagrad, {}),
    "RMSProp": (RMSProp, torch.optim.RMSprop, {}),
    "Adam": (Adam, torch.optim.Adam, {}),
    "AdamW": (AdamW, torch.optim.AdamW, {}),
}


def shortest_steps(optimizers: list[torch.optim.Optimizer]) -> list[float]:
    """The processor's seconds for each one's shortest step, in turns: a busy machine makes none shorter."""
    rounds = [[min(repeat(one.step, number=1, repeat=3, timer=process_time)) for one in optimizers] for _ in range(15)]
    return [min(steps) for steps in zip(*rounds, strict=True)]


def ratios() -> Iterator[tuple[str, float]]:
    """On one thread: two would wait for each other whenever something else disturbs either."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    params = [nn.Parameter(torch.randn(shape)) for shape in SHAPES]
    for p in params:
        p.grad = torch.randn_like(p)
    for name, (ours, theirs, settings) in PAIRS.items():
        peers = [theirs(params, foreach=foreach, **settings) for foreach in (False, True)]
        own, loop, foreach = shortest_steps([ours(params, **settings), *peers])
        yield f"a step of {name} on 10 million parameters, against torch.optim's loop", own / loop
        yield f"a step of {name} on 10 million parameters, against torch.optim's foreach", own / foreach
    torch.set_num_threads(threads)
