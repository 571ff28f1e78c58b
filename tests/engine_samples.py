"""Four exercises of different kinds, for the tests of the engine: a number, a view, a class, an in-place update."""

import torch

from course_lib.exercises.engine import case, exercise
from course_lib.exercises.engine.exercise import REGISTRY


@exercise(
    notebook="99",
    hints=[
        "How far does a step along dimension d move in the storage?",
        "Sum index times stride, then add the offset.",
    ],
    why="A step along dimension d moves stride[d] elements; the view begins at offset.",
)
def position_in(strides: tuple[int, ...], index: tuple[int, ...], offset: int = 0) -> int:
    """Position in the storage (counted in elements) of the element at `index`."""
    # A comment that the solution keeps.
    return offset + sum(i * s for i, s in zip(index, strides, strict=True))


position_in.cases(
    "(4, 1), (1, 2)",
    case("(1, 4), (2, 1)", "a transpose"),
    case("(4, 1), (1, 2), 5", "an offset"),
    case("(0, 1), (7, 2)", "a stride of 0"),
    "(12, 4, 1), (1, 2, 3)",
    case("(), (), 3", "a scalar with an offset"),
    "(30, 10, 2), (1, 0, 4), offset=1",
)


@position_in.misconception("You counted bytes. Strides in PyTorch count elements; numpy's count bytes.")
def counted_bytes(strides, index, offset=0):
    return 4 * (offset + sum(i * s for i, s in zip(index, strides, strict=True)))


@position_in.misconception("You forgot the offset: a view may begin in the middle of the storage.")
def no_offset(strides, index, offset=0):
    return sum(i * s for i, s in zip(index, strides, strict=True))


@position_in.misconception("You assumed that the last dimension lies contiguous. Its stride need not be 1.")
def last_is_one(strides, index, offset=0):
    last = index[-1] if index else 0
    return offset + sum(i * s for i, s in zip(index[:-1], strides[:-1], strict=True)) + last


@position_in.misconception("You paired the strides with the index from the wrong end. Dimension 0 has stride[0].")
def backwards(strides, index, offset=0):
    return offset + sum(i * s for i, s in zip(index, strides[::-1], strict=True))


@position_in.accepts
def as_a_loop(strides, index, offset=0):
    for i, s in zip(index, strides, strict=True):
        offset += i * s
    return offset


@position_in.accepts
def by_torch(strides, index, offset=0):
    return int((torch.tensor(strides) * torch.tensor(index)).sum()) + offset


@exercise(
    notebook="99",
    fixed=("aliasing", "dtype"),
    hints=["How many windows fit?", "The next window and the next element are the same step."],
    why="Both dimensions of the result step by x.stride(0), so nothing is copied.",
)
def windows_of(x: torch.Tensor, size: int) -> torch.Tensor:
    """All windows of `size` neighbours of a 1-D tensor, shape (len(x) - size + 1, size), without copying a number."""
    s = x.stride(0)
    return x.as_strided((x.numel() - size + 1, size), (s, s), x.storage_offset())


windows_of.cases(
    "torch.arange(6.), 3",
    case("torch.arange(5), 1", "windows of one"),
    case("torch.arange(12.)[::2], 3", "a strided input"),
    case("torch.arange(10.)[3:], 2", "an input that begins inside its storage"),
    case("torch.arange(12.).reshape(3, 4)[:, 1], 2", "a column"),
    "torch.arange(8, dtype=torch.bfloat16), 5",
)


@windows_of.misconception("You stacked slices. That copies every number size times; the result should be a view of x.")
def stacked(x, size):
    return torch.stack([x[i : i + size] for i in range(x.numel() - size + 1)])


@windows_of.misconception("The last window is missing: there are len(x) - size + 1 of them.")
def one_short(x, size):
    s = x.stride(0)
    return x.as_strided((x.numel() - size, size), (s, s), x.storage_offset())


@windows_of.misconception("You took strides (1, 1). x need not be contiguous: step by x.stride(0).")
def unit_stride(x, size):
    return x.as_strided((x.numel() - size + 1, size), (1, 1), x.storage_offset())


@windows_of.misconception("Your windows begin at the start of the storage. x may begin later: mind x.storage_offset().")
def from_zero(x, size):
    s = x.stride(0)
    return x.as_strided((x.numel() - size + 1, size), (s, s), 0)


@windows_of.accepts
def unfold(x, size):
    return x.unfold(0, size, 1)


@windows_of.accepts
def transposed(x, size):
    return x.unfold(0, x.numel() - size + 1, 1).t()


@exercise(
    notebook="99",
    tolerance=(1e-5, 1e-7),
    hints=["What must be remembered of each parameter between steps?", "self.state[p] is a dict that belongs to p."],
    why="g2 only grows; the root comes before eps is added.",
)
class SmallAdaGrad(torch.optim.Optimizer):
    """AdaGrad: p -= lr * g / (sqrt(g2) + eps), where g2 sums the squares of all gradients so far."""

    def __init__(self, params, lr: float = 0.01, eps: float = 1e-10):
        """`params` as for any torch optimizer."""
        super().__init__(params, {"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self):
        """One update of every parameter that has a gradient."""
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "g2" not in state:
                    state["g2"] = torch.zeros_like(p)
                state["g2"] += p.grad**2
                p -= group["lr"] * p.grad / (state["g2"].sqrt() + group["eps"])


@SmallAdaGrad.probe
def drive(cls, args, kwargs):
    gradients, groups = args
    ps = [torch.nn.Parameter(torch.tensor([1.0, -2.0, 3.0])), torch.nn.Parameter(torch.ones(2, 2))]
    optimizer = cls([{"params": ps[:1]}, {"params": ps[1:], "lr": 0.5}] if groups else ps, **kwargs)
    seen = {"isinstance(opt, torch.optim.Optimizer)": isinstance(optimizer, torch.optim.Optimizer)}
    for i, step in enumerate(gradients, 1):
        for p, g in zip(ps, step, strict=True):
            p.grad = None if g is None else g.clone()
        optimizer.step()
        for j, p in enumerate(ps):
            seen[f"parameter {j} after step {i}"] = p.detach().clone()
    return seen


def random_steps(n, scale=1.0):
    return [(torch.randn(3) * scale, torch.randn(2, 2) * scale) for _ in range(n)]


SmallAdaGrad.cases(
    case("random_steps(1), False", "one step"),
    case("random_steps(4), False", "four steps"),
    case("random_steps(3), False, lr=0.3", "another lr"),
    case("random_steps(2, 1e-4), False, eps=1e-3", "tiny gradients"),
    "random_steps(2), False, eps=1.0",
    case("[(torch.ones(3), None), (None, torch.ones(2, 2))], False", "a parameter without a gradient"),
    case("random_steps(3), True", "two parameter groups"),
    "random_steps(1), True",
    case("[(torch.zeros(3), torch.zeros(2, 2))], False", "gradients of 0"),
)


class _Base(torch.optim.Optimizer):
    def __init__(self, params, lr=0.01, eps=1e-10):
        super().__init__(params, {"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self.one(p, group, self.state[p])


@SmallAdaGrad.misconception("eps belongs outside the root: sqrt(g2) + eps. Inside it, it dominates small gradients.")
class EpsInside(_Base):
    def one(self, p, group, s):
        s["g2"] = s.get("g2", torch.zeros_like(p)) + p.grad**2
        p -= group["lr"] * p.grad / (s["g2"] + group["eps"]).sqrt()


@SmallAdaGrad.misconception("You forgot the root: dividing by g2 itself makes small gradients take huge steps.")
class NoRoot(_Base):
    def one(self, p, group, s):
        s["g2"] = s.get("g2", torch.zeros_like(p)) + p.grad**2
        p -= group["lr"] * p.grad / (s["g2"] + group["eps"])


@SmallAdaGrad.misconception("You replaced g2 at each step. It sums the squares of all gradients so far.")
class Forgets(_Base):
    def one(self, p, group, s):
        p -= group["lr"] * p.grad / ((p.grad**2).sqrt() + group["eps"])


@SmallAdaGrad.misconception("You used the lr of the constructor. Each parameter group has its own: group['lr'].")
class OneLr(_Base):
    def __init__(self, params, lr=0.01, eps=1e-10):
        super().__init__(params, lr, eps)
        self.lr = lr

    def one(self, p, group, s):
        s["g2"] = s.get("g2", torch.zeros_like(p)) + p.grad**2
        p -= self.lr * p.grad / (s["g2"].sqrt() + group["eps"])


@SmallAdaGrad.accepts
class InPlace(_Base):
    def one(self, p, group, s):
        s.setdefault("sum", torch.zeros_like(p)).addcmul_(p.grad, p.grad)
        p.addcdiv_(p.grad, s["sum"].sqrt().add_(group["eps"]), value=-group["lr"])


@SmallAdaGrad.accepts
class Torchs(torch.optim.Adagrad):
    pass


@exercise(
    notebook="99",
    fixed=("aliasing", "dtype"),
    hints=["Methods that end in _ write into the tensor itself.", "Scale first, then add the new part."],
    why="mul_ and add_ write into average's own storage, so everybody who holds that tensor sees the update.",
)
def blend_(average: torch.Tensor, value: torch.Tensor, decay: float) -> torch.Tensor:
    """Move `average` to decay * average + (1 - decay) * value, in place, and return it."""
    average.mul_(decay).add_(value, alpha=1 - decay)
    return average


blend_.cases(
    "torch.tensor([1., 2., 3.]), torch.tensor([4., 0., -1.]), 0.9",
    case("torch.ones(2, 3), torch.zeros(2, 3), 1.0", "decay 1"),
    case("torch.ones(2, 3), torch.randn(2, 3), 0.0", "decay 0"),
    case("torch.arange(6.).reshape(2, 3).t(), torch.ones(3, 2), 0.25", "a transpose"),
    case("torch.zeros(2, 3), torch.arange(3.), 0.5", "a value that broadcasts"),
    case("torch.arange(12.).reshape(3, 4)[:, 1], torch.ones(3), 0.75", "a column of a larger tensor"),
)


@blend_.misconception("You computed a new tensor. Whoever holds `average` does not see it: use methods that end in _.")
def new_tensor(average, value, decay):
    return decay * average + (1 - decay) * value


@blend_.misconception("Decay is the share of the old average that stays, not the share of the new value.")
def swapped(average, value, decay):
    return average.mul_(1 - decay).add_(value, alpha=decay)


@blend_.misconception("You scaled value in place as well. It belongs to the caller.")
def scales_value(average, value, decay):
    value.mul_(1 - decay)
    return average.mul_(decay).add_(value)


@blend_.misconception("The update is right but nothing is returned. Methods that end in _ return the tensor.")
def returns_none(average, value, decay):
    average.mul_(decay).add_(value, alpha=1 - decay)


@blend_.misconception("You returned a copy. Return the very tensor that you updated.")
def returns_copy(average, value, decay):
    return average.mul_(decay).add_(value, alpha=1 - decay).clone()


@blend_.accepts
def lerp(average, value, decay):
    return average.lerp_(value.expand_as(average), 1 - decay)


@blend_.accepts
def copy_in(average, value, decay):
    return average.copy_(decay * average + (1 - decay) * value)


SAMPLES = {one.name: one for one in (position_in, windows_of, SmallAdaGrad, blend_)}
for _name in SAMPLES:  # they are no exercises of the course; a test that wants `check` to find them puts them back
    del REGISTRY[_name]
