"""What a checkpoint holds: collected so that a file can hold it, held against a run, and put back into it."""
import random
from collections import Counter, OrderedDict
from itertools import chain
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from course_lib.checked import describe

_ATOMS = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.Size)
_KINDS = "tensors, numbers, strings, lists and dicts can be saved"


_DEEPEST = 100
_MOST_BITS = 2039  # of an int: torch.load(weights_only=True) reads no more


def storable(value: object, where: str, depth: int = 0) -> object:
    """`value` as a file can hold it without pickled objects. NumPy's numbers become Python's."""
    if isinstance(value, np.number | np.bool_):
        value = value.item()
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        came = f"{where} is an int of {value.bit_length():,} bits"
        raise ValueError(f"save_checkpoint(): {came}; {_MOST_BITS:,} are the most.")
    if type(value) in _ATOMS:
        return value
    if depth > _DEEPEST:
        came = f"{where[:40]}… lies in more than {_DEEPEST} lists and dicts"
        raise ValueError(f"save_checkpoint(): {came}; fewer can be saved.")
    if isinstance(value, Tensor):
        return _compact(value, where)
    if type(value) in (list, tuple):
        return type(value)(storable(one, f"{where}[{number}]", depth + 1) for number, one in enumerate(value))
    if isinstance(value, dict):
        kept = {
            storable(key, f"a key of {where}", depth + 1): storable(one, f"{where}[{key!r}]", depth + 1)
            for key, one in value.items()
        }
        return _like(value, kept)
    raise TypeError(f"save_checkpoint(): {where} is {describe(value)}; {_KINDS}.")


def _like(value: dict, kept: dict) -> dict:
    """`kept` as the kind of dict that `value` is; a model's also knows the versions of its modules."""
    if isinstance(value, Counter):
        return Counter(kept)
    if not isinstance(value, OrderedDict):
        return kept
    ordered = OrderedDict(kept)
    if hasattr(value, "_metadata"):
        ordered._metadata = value._metadata
    return ordered


def _compact(x: Tensor, where: str) -> Tensor:
    """x without its history, and without the rest of a larger storage, which torch.save would write as a whole."""
    if isinstance(x, nn.parameter.UninitializedTensorMixin):
        raise ValueError(f"save_checkpoint(): {where} has no shape yet; run the model once before you save it.")
    if x.is_meta:
        raise ValueError(f"save_checkpoint(): {where} is on the meta device, where there are no numbers to save.")
    x = x.detach()
    if type(x) is not Tensor or x.layout is torch._mkldnn:
        kind = f"a {type(x).__name__}" if type(x) is not Tensor else "an MKL-DNN tensor"
        raise TypeError(f"save_checkpoint(): {where} is {kind}; {_KINDS}.")
    if x.layout is torch.strided and x.numel() * x.element_size() < x.untyped_storage().nbytes():
        return x.clone()
    return x


def signature(model: nn.Module, optimizer: Optimizer) -> dict:
    """Which optimizer it is, and for each group the names and shapes of its parameters, in their order."""
    names = {id(p): name for name, p in model.named_parameters()}
    groups = [group["params"] for group in optimizer.param_groups]
    described = [[f"{names.get(id(p), 'a tensor')} {tuple(p.shape)}" for p in params] for params in groups]
    return {"kind": type(optimizer).__name__, "groups": described}


def state_of(function: str, name: str, part: object) -> object:
    """part.state_dict(), or None for None. Raises TypeError for a part that has none."""
    if part is None:
        return None
    if not (hasattr(part, "state_dict") and hasattr(part, "load_state_dict")):
        raise TypeError(f"{function}(): {name} is {describe(part)}; something with state_dict() is asked for.")
    return part.state_dict()


def generator_states() -> dict:
    """The states of the generators that all code shares: torch's, on the CPU and the GPUs, NumPy's and Python's."""
    numpys = np.random.get_state(legacy=False)["bit_generator"]
    if numpys != "MT19937":
        wanted = "the MT19937 that NumPy begins with is asked for"
        raise ValueError(f"The generator that all NumPy code shares has been replaced by {numpys}; {wanted}.")
    _, keys, position, has_gauss, gauss = np.random.get_state()
    version, numbers, python_gauss = random.getstate()
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else [],
        "numpy": [torch.from_numpy(keys.astype(np.int64)), position, has_gauss, gauss],
        "python": [version, torch.tensor(numbers, device="cpu"), python_gauss],
    }


def set_generators(path: Path, states: dict) -> None:
    """Put the generators where they were; GPUs that are not here are left out. All or none: ValueError for none."""
    before = generator_states()
    try:
        _set_generators(states)
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError):
        _set_generators(before)
        came = f"{path.name} holds no states of generators as this version saves them"
        raise ValueError(f"load_checkpoint(): {came}.") from None


def _set_generators(states: dict) -> None:
    torch.set_rng_state(states["torch"])
    for device, state in enumerate(states["cuda"][: torch.cuda.device_count()]):
        torch.cuda.set_rng_state(state, device)
    keys, *rest = states["numpy"]
    np.random.set_state(("MT19937", keys.numpy().astype(np.uint32), *rest))
    version, numbers, gauss = states["python"]
    random.setstate((version, tuple(numbers.tolist()), gauss))


def require_fitting_model(path: Path, saved: dict, model: nn.Module) -> None:
    """Raise one sentence if names, shapes or dtypes differ. load_state_dict copies what fits before it complains."""
    own, complaint = model.state_dict(), None
    if missing := [name for name in own if name not in saved]:
        complaint = f"lacks {missing[0]}, which the model has"
    elif extra := [name for name in saved if name not in own]:
        complaint = f"holds {extra[0]}, which the model has not"
    for name, x in own.items() if complaint is None else ():
        if isinstance(x, Tensor) and x.is_meta:
            raise ValueError(f"load_checkpoint(): {name} is on the meta device, where no numbers can be put.")
        if isinstance(x, Tensor) and not _is_alike(x, saved[name]):
            complaint = f"holds {name} as {describe(saved[name])}, and the model's is {describe(x)}"
            break
    complaint = complaint or _untied(own, saved)
    if complaint:
        raise ValueError(f"load_checkpoint(): {path.name} is another model's: it {complaint}.")


def _untied(own: dict, saved: dict) -> str | None:
    """Two names for one tensor of the model that are two in the file: of those, one would be lost."""
    first: dict[tuple, str] = {}
    for name, x in own.items():
        if not isinstance(x, Tensor) or x.layout is not torch.strided or x.numel() == 0:
            continue
        one = first.setdefault((x.data_ptr(), x.shape, x.stride()), name)
        if one != name and not torch.equal(saved[one], saved[name]):
            return f"holds {one} and {name} as two tensors, which are one in the model"
    return None


def _is_alike(x: Tensor, saved: object) -> bool:
    return isinstance(saved, Tensor) and (saved.shape, saved.dtype) == (x.shape, x.dtype)


def require_fitting_optimizer(path: Path, saved: dict, own: dict) -> None:
    """Raise one sentence if two signatures differ. torch would hand a parameter what was remembered of another one."""
    if saved.get("kind") != own["kind"] or "groups" not in saved:
        complaint = f"it was saved with {saved.get('kind')}, and {own['kind']} is given"
    elif saved["groups"] == own["groups"]:
        return
    elif (was := [*map(len, saved["groups"])]) != (now := [*map(len, own["groups"])]):
        complaint = f"its groups had {was} parameters, and now they have {now}"
    else:
        pairs = zip(chain(*saved["groups"]), chain(*own["groups"]), strict=True)
        was, now = next(pair for pair in pairs if pair[0] != pair[1])
        complaint = f"where it had {was}, it now has {now}"
    raise ValueError(f"load_checkpoint(): {path.name} is another optimizer's: {complaint}.")


def load_all(parts: list[tuple[object, object]], generators: tuple[Path, dict] | None) -> None:
    """Load each part's state, and the generators last; if one of them refuses, all are put back."""
    before = []
    try:
        for part, state in parts:
            before.append((part, part.state_dict()))
            part.load_state_dict(state)
            if isinstance(part, Optimizer):
                _restore_dtypes(part, state)
        if generators:
            set_generators(*generators)
    except BaseException:
        for part, state in before:
            part.load_state_dict(state)
        raise


def _restore_dtypes(optimizer: Optimizer, saved: dict) -> None:
    """torch casts what an optimizer remembers to the parameter's dtype; what was saved in another one comes back so."""
    params = [p for group in optimizer.param_groups for p in group["params"]]
    ids = [number for group in saved["param_groups"] for number in group["params"]]
    for p, number in zip(params, ids, strict=True):
        for key, value in saved["state"].get(number, {}).items():
            if isinstance(value, Tensor) and optimizer.state[p][key].dtype != value.dtype:
                optimizer.state[p][key] = value.to(p.device)
