"""The exercises of notebook 11: settings that do not arrive, a loop to repair, clipping, a careful step, a schedule."""
import copy
import math

import torch
from torch import nn

from course_lib.exercises import training_runs as runs
from course_lib.exercises.engine import case, exercise
from course_lib.exercises.training_runs import norm_of
from course_lib.optim import SGD, Adam

# ---------------------------------------------------------------- 11.1


@exercise(
    notebook="11",
    hints=[
        "Train once with settings. Then once more for each name, with that one setting changed and no other.",
        "{**settings, name: others[name]} is a copy of settings in which one value is another.",
        "A setting that arrives may do so late: compare the whole lists. Lists are equal if all their numbers are.",
    ],
    why="A run that repeats exactly is a measuring instrument: whatever differs between two runs is the work of what "
    "you changed. So change one thing, and ask whether any number of the curve noticed.",
)
def ignored_settings(train, settings: dict, others: dict) -> list[str]:
    """Names of the settings that make no difference to a training function.

    train(**settings) returns the losses of a run, one for each step, and for equal settings exactly
    the same ones. others has another value for each setting. A setting is ignored if changing it
    alone, from its value in settings to that in others, changes no loss. The names come in the
    order of settings.
    """
    losses = train(**settings)
    return [name for name in settings if train(**{**settings, name: others[name]}) == losses]


USUAL = {"lr": 0.1, "num_steps": 5, "momentum": 0.5, "seed": 0}
OTHER = {"lr": 0.2, "num_steps": 6, "momentum": 0.9, "seed": 1}

ignored_settings.cases(
    case('runs.Run("published"), USUAL, OTHER', "a function that takes settings and uses its own"),
    'runs.Run("published"), dict(seed=3, lr=0.3, num_steps=4, momentum=0.5), OTHER',
    case('runs.Run("all arrive"), USUAL, OTHER', "one that uses all of them"),
    'runs.Run("without seed"), USUAL, OTHER',
    case('runs.Run("late"), {**USUAL, "num_steps": 8}, OTHER', "one whose learning rate counts late"),
    'runs.Run("late"), {"seed": 2, "momentum": 0.0, "num_steps": 7, "lr": 0.1}, OTHER',
    'runs.Run("none arrives"), USUAL, OTHER',
    'runs.Run("all arrive"), {**USUAL, "num_steps": 1}, {**OTHER, "num_steps": 2}',
)


@ignored_settings.misconception(
    "You compared the first losses. They are of the weights before any step, so that no learning rate shows in them."
)
def by_the_first_loss(train, settings, others):
    return [name for name in settings if train(**{**settings, name: others[name]})[0] == train(**settings)[0]]


@ignored_settings.misconception("You compared the last losses. Two runs may end alike: compare all that they recorded.")
def by_the_last_loss(train, settings, others):
    return [name for name in settings if train(**{**settings, name: others[name]})[-1] == train(**settings)[-1]]


@ignored_settings.misconception("Those are the settings that matter. Asked for are those that make no difference.")
def the_ones_that_matter(train, settings, others):
    return [name for name in settings if train(**{**settings, name: others[name]}) != train(**settings)]


@ignored_settings.misconception("You changed all settings at once. If the curve moves, which one did it?")
def all_at_once(train, settings, others):
    return [*settings] if train(**others) == train(**settings) else []


@ignored_settings.misconception(
    "A changed setting stayed changed, so that later runs differ by several. Put it back, or change a copy."
)
def never_put_back(train, settings, others):
    losses, now, found = train(**settings), dict(settings), []
    for name in settings:
        now[name] = others[name]
        found += [name] if train(**now) == losses else []
    return found


@ignored_settings.accepts
def as_a_loop(train, settings, others):
    found = []
    for name in settings:
        changed = dict(settings)
        changed[name] = others[name]
        if train(**changed) == train(**settings):
            found.append(name)
    return found


@ignored_settings.accepts
def starting_from_the_others(train, settings, others):
    runs = {name: train(**(settings | {name: others[name]})) for name in settings}
    same = train(**settings)
    return [name for name, losses in runs.items() if losses == same]


# ---------------------------------------------------------------- 11.2


@exercise(
    notebook="11",
    tolerance=(1e-4, 1e-6),
    hints=[
        "Follow each argument: where is it used? Then each shape. Then a gradient, through two rounds of the loop.",
        "(4, 1) minus (4,) is (4, 4): every prediction minus every target. And backward adds to what .grad holds.",
        "lr=lr; model(x).squeeze(-1); optimizer.zero_grad() before backward.",
    ],
    why="To Python none of the three is an error. The lr is the caller's; a loss compares element by "
    "element only if both shapes agree; and a gradient belongs to one batch, so the old one has to go first.",
    stub='''
def fit(model: nn.Module, batches: list, lr: float) -> list[float]:
    """One step of SGD for each batch (x, y); returns the losses, each from before its step.

    The loss is the mean squared error. model(x) has shape (batch, 1), and y has shape (batch,).
    Three mistakes are in here, and none of them raises an error. Mend them.
    """
    optimizer = SGD(model.parameters(), lr=0.01)
    losses = []
    for x, y in batches:
        loss = (model(x) - y).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
''',
)
def fit(model: nn.Module, batches: list, lr: float) -> list[float]:
    """One step of SGD for each batch (x, y); returns the losses, each from before its step.

    The loss is the mean squared error. model(x) has shape (batch, 1), and y has shape (batch,).
    """
    optimizer = SGD(model.parameters(), lr=lr)
    losses = []
    for x, y in batches:
        loss = (model(x).flatten() - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


fit.cases(
    case("nn.Linear(3, 1), runs.batches(5, 4), 0.1", "five batches of four"),
    "nn.Linear(3, 1), runs.batches(6, 2), 0.02",
    case("nn.Linear(3, 1), runs.batches(3, 1), 0.1", "batches of one example"),
    "nn.Linear(3, 1), runs.batches(4, 1), 0.01",
    case("nn.Linear(3, 1), runs.batches(1, 4), 0.1", "a single batch"),
    "nn.Linear(3, 1), runs.batches(1, 1), 0.2",
    "nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1)), runs.batches(5, 3), 0.05",
    "nn.Linear(2, 1, bias=False), runs.batches(4, 5, dim=2), 0.01",
    case("nn.Linear(3, 1), [], 0.1", "no batch at all"),
)


@fit.probe
def fit_and_look(candidate, args, kwargs):
    """The losses, and what has become of the model."""
    model, data, lr = args
    model = copy.deepcopy(model)  # what is in .grad afterwards is nobody's business
    losses = candidate(model, data, lr)
    return {"losses": losses, **{name: weight.detach().clone() for name, weight in model.named_parameters()}}


def _fit(model, batches, lr=0.01, squeeze=False, forget=False):
    """The loop of the stub, with as many of its mistakes mended as is said."""
    optimizer, losses = SGD(model.parameters(), lr=lr), []
    for x, y in batches:
        pred = model(x).squeeze(-1) if squeeze else model(x)
        loss = (pred - y).pow(2).mean()
        if forget:
            optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@fit.misconception("Two of three are mended. Who asks for another learning rate than 0.01 does not get it.")
def lr_still_ignored(model, batches, lr):
    return _fit(model, batches, squeeze=True, forget=True)


@fit.misconception("Two of three are mended. (batch, 1) minus (batch,) still broadcasts to (batch, batch).")
def still_broadcasts(model, batches, lr):
    return _fit(model, batches, lr, forget=True)


@fit.misconception("Two of three are mended. .grad still holds what earlier batches left, and backward adds to it.")
def still_accumulates(model, batches, lr):
    return _fit(model, batches, lr, squeeze=True)


@fit.misconception("The learning rate arrives now, and two mistakes are left: one in a shape, one in .grad.")
def only_the_lr(model, batches, lr):
    return _fit(model, batches, lr)


@fit.misconception("The shapes are right now, and two mistakes are left: one in an argument, one in .grad.")
def only_the_shapes(model, batches, lr):
    return _fit(model, batches, squeeze=True)


@fit.misconception("Old gradients go in time now, and two mistakes are left: one in an argument, one in a shape.")
def only_zero_grad(model, batches, lr):
    return _fit(model, batches, forget=True)


@fit.misconception("zero_grad stands between backward and step: the gradient is gone before anybody has used it.")
def forgets_too_early(model, batches, lr):
    return [(model(x).squeeze(-1) - y).pow(2).mean().item() for x, y in batches]


@fit.accepts
def with_a_functional_loss(model, batches, lr):
    optimizer, losses = torch.optim.SGD(model.parameters(), lr), []
    for x, y in batches:
        loss = nn.functional.mse_loss(model(x), y[:, None])
        losses.append(loss.item())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return losses


@fit.accepts
def by_hand(model, batches, lr):
    weights, losses = list(model.parameters()), []
    for x, y in batches:
        loss = ((model(x)[:, 0] - y) ** 2).mean()
        losses.append(float(loss.detach()))
        for weight, gradient in zip(weights, torch.autograd.grad(loss, weights), strict=True):
            weight.detach().sub_(lr * gradient)
    return losses


# ---------------------------------------------------------------- 11.3


@exercise(
    notebook="11",
    tolerance=(1e-4, 1e-7),
    hints=[
        "All gradients together are one long vector. Its length is the root of the sum of all squares.",
        "A norm of norms: torch.stack([g.norm() for g in gradients]).norm().",
        "One factor for all, max_norm / norm, but never above 1.",
    ],
    why="One factor for all gradients shortens the step and keeps its direction. Returned is the norm as it came: "
    "it is what you plot, to see a run go wrong before the loss does.",
)
def clip_gradients(parameters: list[nn.Parameter], max_norm: float) -> float:
    """Shorten all gradients by one factor, so that their norm together is at most max_norm.

    The norm is the root of the sum of all squares, over all parameters; one whose .grad is None
    does not count. Gradients that are short enough stay as they are. Returns the norm before.
    """
    gradients = [p.grad for p in parameters if p.grad is not None]
    norm = torch.stack([g.norm() for g in gradients]).norm()
    for g in gradients:
        g.mul_((max_norm / norm).clamp(max=1.0))
    return norm.item()


clip_gradients.cases(
    case("[runs.parameter([3.0, 4.0])], 1.0", "a gradient of length 5"),
    case("[runs.parameter([3.0, 4.0]), runs.parameter([12.0])], 6.5", "two parameters"),
    case("[runs.parameter([[3.0, 0.0], [0.0, 4.0]]), runs.parameter(None), runs.parameter([12.0])], 2.5", "one None"),
    "[runs.parameter([0.3, 0.4])], 1.0",
    "[runs.parameter([0.1, 0.2]), runs.parameter([-0.2, 0.4])], 0.9",
    case("[runs.parameter([30.0, 40.0]), runs.parameter([0.5])], 2.0", "one long, one short"),
    case("[runs.parameter([0.0, 0.0])], 1.0", "gradients of 0"),
    "[runs.parameter([-6.0, 0.5]), runs.parameter([[0.2]]), runs.parameter([3.0])], 5.0",
    "[runs.parameter([0.6, 0.0]), runs.parameter([0.8])], 0.9",
)


@clip_gradients.probe
def clip_and_look(candidate, args, kwargs):
    """What is returned, and what the optimizer will find."""
    parameters, max_norm = args
    norm = candidate(parameters, max_norm)
    held = {f"parameters[{i}].grad": None if p.grad is None else p.grad.clone() for i, p in enumerate(parameters)}
    return {"norm before": norm, **held, "weights": [p.detach().clone() for p in parameters]}


def _gradients(parameters):
    return [p.grad for p in parameters if p.grad is not None]


@clip_gradients.misconception("Each gradient has a factor of its own: that changes the direction. Take one for all.")
def each_for_itself(parameters, max_norm):
    norm = norm_of(parameters)
    for g in _gradients(parameters):
        g.mul_(min(1.0, max_norm / max(g.norm().item(), 1e-12)))
    return norm


@clip_gradients.misconception("You limited each number. That bends the direction; clipping by norm only shortens.")
def by_value(parameters, max_norm):
    norm = norm_of(parameters)
    for g in _gradients(parameters):
        g.clamp_(-max_norm, max_norm)
    return norm


@clip_gradients.misconception("Short gradients have become longer. Clipping only shortens: the factor is at most 1.")
def always_scaled(parameters, max_norm):
    norm = norm_of(parameters)
    for g in _gradients(parameters):
        g.mul_(max_norm / max(norm, 1e-12))
    return norm


@clip_gradients.misconception("You returned the norm after clipping. The one before says what came.")
def norm_after(parameters, max_norm):
    return min(max_norm, clip_gradients.reference(parameters, max_norm))


@clip_gradients.misconception("You added up the norms. Lengths add up as their squares do: √(3² + 4²) = 5, not 7.")
def sum_of_norms(parameters, max_norm):
    norm = sum(g.norm().item() for g in _gradients(parameters))
    for g in _gradients(parameters):
        g.mul_(min(1.0, max_norm / max(norm, 1e-12)))
    return norm


@clip_gradients.misconception("You scaled a copy. The optimizer reads .grad: write into it, as mul_ does.")
def scales_a_copy(parameters, max_norm):
    gradients = _gradients(parameters)
    norm = norm_of(parameters)
    gradients = [g * min(1.0, max_norm / max(norm, 1e-12)) for g in gradients]
    return norm


@clip_gradients.accepts
def torchs_own(parameters, max_norm):
    return nn.utils.clip_grad_norm_(parameters, max_norm).item()


@clip_gradients.accepts
def with_new_gradients(parameters, max_norm):
    norm = torch.cat([p.grad.flatten() for p in parameters if p.grad is not None]).norm().item()
    for p in parameters:
        if p.grad is not None and norm > max_norm:
            p.grad = p.grad / norm * max_norm
    return norm


# ---------------------------------------------------------------- 11.4


@exercise(
    notebook="11",
    tolerance=(1e-4, 1e-6),
    hints=[
        "What is not finite: inf, -inf and NaN. torch.isfinite knows all three; a comparison with NaN is always False.",
        "A loss can be finite and its gradient not. nn.utils.get_total_norm takes a list of gradients.",
        "Look between backward and step: after the step, the weights are spoilt already.",
    ],
    why="After backward all is known and nothing has happened yet. One gradient of NaN spoils its weight for ever, so "
    "this is the last moment. A message with step, loss and norm says where to look: at the loss, or at a gradient.",
)
def careful_step(model: nn.Module, optimizer, loss: torch.Tensor, step: int) -> float:
    """One step of training that refuses to spoil the model; returns the loss as a number.

    Gradients of earlier steps do not count. If the loss, or the norm of all gradients together, is
    inf or NaN, raise an ArithmeticError whose message holds three numbers: step, loss and gradient
    norm. Weights and optimizer are then as they were.
    """
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.get_total_norm([p.grad for p in model.parameters() if p.grad is not None])
    if not (loss.isfinite() and norm.isfinite()):
        raise ArithmeticError(f"step {step}: loss {loss.item():.3g}, gradient norm {norm.item():.3g}")
    optimizer.step()
    return loss.item()


careful_step.cases(
    case('optimizer="SGD", loss="fine", step=7', "a step that goes well"),
    'optimizer="Adam", loss="fine", step=12',
    case('optimizer="SGD", loss="nan", step=17', "a loss of NaN"),
    'optimizer="Adam", loss="nan", step=30',
    case('optimizer="SGD", loss="inf", step=41', "a loss of inf"),
    'optimizer="Adam", loss="-inf", step=300',
    case('optimizer="SGD", loss="2.5, and its gradient is nan", step=58', "a finite loss whose gradient is NaN"),
    'optimizer="Adam", loss="2.5, and its gradient is inf", step=63',
    'optimizer="SGD", loss="2.5, and its gradient is inf", step=0',
)


@careful_step.probe
def step_and_look(candidate, args, kwargs):
    """What comes back, or what the message says; and what has become of weights and optimizer."""
    make, kind, step = kwargs.values()
    model = runs.Two()
    optimizer = {"SGD": SGD, "Adam": Adam}[make](model.parameters(), lr=0.1)
    for p in model.parameters():
        p.grad = torch.tensor(100.0)  # of an earlier step
    loss = runs.out_of(model, kind)
    try:
        seen = {"returned": candidate(model, optimizer, loss, step)}
    except ArithmeticError as error:
        seen = runs.claims(str(error), step=step, loss=loss.item(), norm=runs.true_norm(kind))
    weights = torch.stack([model.a, model.b]).detach()
    seen["weights afterwards"] = weights if weights.isfinite().all() else "spoilt"
    seen["the optimizer remembers something"] = any(optimizer.state.values())
    return seen


def _careful(model, optimizer, loss, step, refuse, message=None):
    optimizer.zero_grad()
    loss.backward()
    norm = norm_of(model.parameters())
    if refuse(loss.item(), norm):
        raise ArithmeticError(message or f"step {step}: loss {loss.item():.3g}, gradient norm {norm:.3g}")
    optimizer.step()
    return loss.item()


@careful_step.misconception("You look at the loss alone. It can be finite while its gradient is not.")
def loss_alone(model, optimizer, loss, step):
    return _careful(model, optimizer, loss, step, lambda value, norm: not math.isfinite(value))


@careful_step.misconception("NaN is not the only one: inf - inf is NaN a step later. isfinite knows both.")
def nan_alone(model, optimizer, loss, step):
    return _careful(model, optimizer, loss, step, lambda value, norm: math.isnan(value) or math.isnan(norm))


@careful_step.misconception("Every comparison with NaN is False, even NaN == NaN. Ask math.isnan, or better isfinite.")
def compared_with_nan(model, optimizer, loss, step):
    return _careful(model, optimizer, loss, step, lambda value, norm: value == math.nan or norm == math.nan)


@careful_step.misconception("You look after the step: by then the weights are spoilt. Look between backward and step.")
def after_the_step(model, optimizer, loss, step):
    optimizer.zero_grad()
    loss.backward()
    norm = norm_of(model.parameters())
    optimizer.step()
    if not (loss.isfinite() and math.isfinite(norm)):
        raise ArithmeticError(f"step {step}: loss {loss.item():.3g}, gradient norm {norm:.3g}")
    return loss.item()


@careful_step.misconception("You left the step out in silence. The run goes on for hours, and learns nothing: raise.")
def in_silence(model, optimizer, loss, step):
    try:
        return careful_step.reference(model, optimizer, loss, step)
    except ArithmeticError:
        return loss.item()


@careful_step.misconception("Who reads this at night wants to know which step, which loss, which norm: three numbers.")
def without_numbers(model, optimizer, loss, step):
    def bad(value, norm):
        return not (math.isfinite(value) and math.isfinite(norm))

    return _careful(model, optimizer, loss, step, bad, "Training has diverged!")


@careful_step.misconception("The gradients of an earlier step are still in .grad. Forget them before backward.")
def keeps_old_gradients(model, optimizer, loss, step):
    loss.backward()
    norm = norm_of(model.parameters())
    if not (loss.isfinite() and math.isfinite(norm)):
        raise ArithmeticError(f"step {step}: loss {loss.item():.3g}, gradient norm {norm:.3g}")
    optimizer.step()
    return loss.item()


@careful_step.accepts
def with_a_norm_by_hand(model, optimizer, loss, step):
    model.zero_grad()
    loss.backward()
    norm = sum(p.grad.double().pow(2).sum().item() for p in model.parameters() if p.grad is not None) ** 0.5
    value = float(loss.detach())
    for number in (value, norm):
        if not math.isfinite(number):
            raise FloatingPointError(f"The loss is {value} and the gradient norm {norm}. This is step {step}.")
    optimizer.step()
    return value


@careful_step.accepts
def with_torchs_clipping(model, optimizer, loss, step):
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), math.inf)
    if torch.stack([loss.detach(), norm]).isfinite().all():
        optimizer.step()
        return loss.item()
    raise ArithmeticError(f"loss={loss.item()}, norm={norm.item()}, step={step}")


# ---------------------------------------------------------------- 11.5


@exercise(
    notebook="11",
    hints=[
        "Two pieces: a straight line for the first warmup_steps steps, a cosine after them.",
        "How far through the second piece is this step? A share that is 0 at step warmup_steps and 1 at total_steps.",
        "(1 + cos(π · share)) / 2 falls from 1 to 0. Stretch it to run from peak to final, and stop at a share of 1.",
    ],
    why="(step + 1)/warmup_steps gives the first step something to do and reaches the peak on the last step of the "
    "warmup. The share counts from the end of the warmup, and is held at 1, since a cosine would rise again.",
)
def scheduled_rate(
    step: int, peak: float, warmup_steps: int, total_steps: int, final: float
) -> float:
    """Learning rate of a step, counted from 0: warmup, then half a cosine wave.

    Steps 0 to warmup_steps - 1 rise in a straight line: peak / warmup_steps for the first, peak
    for the last. From peak at step warmup_steps the rate falls along half a cosine wave to final
    at step total_steps, and stays there.
    """
    if step < warmup_steps:
        return peak * (step + 1) / warmup_steps
    share = min((step - warmup_steps) / (total_steps - warmup_steps), 1.0)
    return final + (peak - final) * (1 + math.cos(math.pi * share)) / 2


scheduled_rate.cases(
    case("0, 0.1, 10, 100, 0.0", "the first step"),
    "4, 0.1, 10, 100, 0.0",
    case("9, 0.1, 10, 100, 0.01", "the last step of the warmup"),
    case("10, 0.1, 10, 100, 0.01", "the first step after it"),
    "40, 0.3, 10, 100, 0.0",
    "55, 0.1, 10, 100, 0.01",
    "70, 0.3, 20, 120, 0.06",
    case("100, 0.1, 10, 100, 0.01", "the end"),
    case("150, 0.1, 10, 100, 0.01", "long after the end"),
    "130, 0.3, 20, 120, 0.06",
    case("20, 0.2, 0, 50, 0.02", "no warmup"),
)


def _rate(step, peak, warmup_steps, total_steps, final, rise=None, share=None, fall=None):
    """The reference with a piece of it exchanged."""
    if step < warmup_steps:
        return rise(step, peak, warmup_steps) if rise else peak * (step + 1) / warmup_steps
    usual = min((step - warmup_steps) / (total_steps - warmup_steps), 1.0)
    part = share(step, warmup_steps, total_steps) if share else usual
    return final + (peak - final) * (fall(part) if fall else (1 + math.cos(math.pi * part)) / 2)


@scheduled_rate.misconception("Your first step has a rate of 0: it costs as much as any other and does nothing.")
def first_step_lost(step, peak, warmup_steps, total_steps, final):
    return _rate(step, peak, warmup_steps, total_steps, final, rise=lambda t, p, w: p * t / w)


@scheduled_rate.misconception("After the end your cosine rises again. The share of the way is 1 there, and stays 1.")
def rises_again(step, peak, warmup_steps, total_steps, final):
    return _rate(step, peak, warmup_steps, total_steps, final, share=lambda t, w, n: (t - w) / (n - w))


@scheduled_rate.misconception("Your cosine counts from step 0, so that the rate jumps where the warmup ends.")
def counts_from_zero(step, peak, warmup_steps, total_steps, final):
    return _rate(step, peak, warmup_steps, total_steps, final, share=lambda t, w, n: min(t / n, 1.0))


@scheduled_rate.misconception("That is a whole wave: back at the peak in the end. Half a wave ends at cos(π).")
def whole_wave(step, peak, warmup_steps, total_steps, final):
    return _rate(step, peak, warmup_steps, total_steps, final, fall=lambda part: (1 + math.cos(2 * math.pi * part)) / 2)


@scheduled_rate.misconception("You fall in a straight line. A cosine leaves the peak slowly and arrives slowly.")
def straight_fall(step, peak, warmup_steps, total_steps, final):
    return _rate(step, peak, warmup_steps, total_steps, final, fall=lambda part: 1 - part)


@scheduled_rate.misconception("You fall to 0. The rate is to end at final: stretch the cosine over peak - final.")
def falls_to_zero(step, peak, warmup_steps, total_steps, final):
    return _rate(step, peak, warmup_steps, total_steps, 0.0)


@scheduled_rate.accepts
def from_the_librarys_schedules(step, peak, warmup_steps, total_steps, final):
    from course_lib.schedules import cosine, warmup

    return peak * warmup(warmup_steps, then=cosine(total_steps - warmup_steps, final / peak))(step)


@scheduled_rate.accepts
def with_a_sine_squared(step, peak, warmup_steps, total_steps, final):
    if step + 1 <= warmup_steps:
        return peak / warmup_steps * (step + 1)
    if step >= total_steps:
        return final
    angle = math.pi / 2 * (step - warmup_steps) / (total_steps - warmup_steps)
    return peak - (peak - final) * math.sin(angle) ** 2
