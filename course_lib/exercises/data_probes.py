"""What notebook 09's exercises are looked at by: files in a folder of their own, many batches, a saved position."""
import io
import os
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch

from course_lib.data import get_batch
from course_lib.exercises.probing import SharedGenerators, is_pair, require

OLDER = b"older"
DRAWS = 60  # of each legal start, on average; that one of 20 is never drawn then has a chance of 2e-25


def raw(ids: list[int], dtype: str) -> bytes:
    """What `tofile` writes."""
    return np.array(ids, dtype).tobytes()


def npy(ids: list[int], dtype: str) -> bytes:
    """What `np.save` writes: a header, then the same."""
    file = io.BytesIO()
    np.save(file, np.array(ids, dtype))
    return file.getvalue()


def is_npy(path: str) -> bool:
    """Whether the file begins as a .npy does."""
    with open(path, "rb") as file:
        return file.read(6) == b"\x93NUMPY"


def map_and_look(candidate: Callable, args: tuple, kwargs: dict) -> dict[str, object]:
    """The first two arguments are a file's name and contents. What is opened, and what a write through it does."""
    name, contents, dtype = args
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = Path(folder, name)
        path.write_bytes(contents)
        with _peak_of_memory() as peak:
            tokens = candidate(str(path), dtype)
        held = np.asarray(tokens)
        seen = {
            "the tokens": held[:100].tolist() if held.ndim else held.tolist(),
            "the shape": held.shape,
            "the dtype": held.dtype.name,
            "is a map, so that only what is used is loaded": getattr(tokens, "filename", None) is not None,
            "reads the whole file": len(contents) > 10**6 and peak[0] > len(contents) / 2,
            "a write": _what_a_write_does(tokens, path, contents),
        }
        del tokens, held  # Windows deletes no file that is mapped
    return seen


@contextmanager
def _peak_of_memory() -> Iterator[list[int]]:
    """What Python and NumPy had in memory at most, in bytes, known at the end. A map is not in it."""
    peak = [0]
    if tracemalloc.is_tracing():  # somebody else's business
        yield peak
        return
    tracemalloc.start()
    try:
        yield peak
    finally:
        peak[0] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()


def _what_a_write_does(tokens: np.ndarray, path: Path, contents: bytes) -> str:
    if np.size(tokens) == 0 or np.ndim(tokens) == 0:
        return "finds nothing to write to"
    try:
        tokens[0] = 1 - min(int(tokens.flat[0]), 1)
    except (ValueError, TypeError):
        return "is refused"
    getattr(tokens, "flush", list)()
    return "changes the copy in memory" if path.read_bytes() == contents else "changes the file"


def save_and_look(candidate: Callable, args: tuple, kwargs: dict) -> dict[str, object]:
    """An older file lies there. What the folder holds afterwards, and how things stood when the file got its name."""
    name, tokens, dtype = args
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = Path(folder, name)
        path.write_bytes(OLDER)
        with _watching_renames(path) as renames:
            try:
                candidate(str(path), tokens, dtype)
                outcome = "no error"
            except ValueError:
                outcome = "ValueError"
        written = path.read_bytes() if path.exists() else b""
        return {
            "it ends with": outcome,
            "the file": "the older one" if written == OLDER else list(written[:64]),
            "in the folder": sorted(os.listdir(folder)),
            "the file got its name": [{**how, "was it whole then": held == written} for how, held in renames],
        }


@contextmanager
def _watching_renames(path: Path) -> Iterator[list[tuple[dict[str, bool], bytes]]]:
    """Note, for each rename to `path`, how things stood, and what the renamed file held at that moment."""
    seen, usual = [], (os.replace, os.rename)

    def watch(real: Callable) -> Callable:
        def rename(source: str, target: str, **kwargs: object) -> None:
            if Path(target) == path:
                older = path.exists() and path.read_bytes() == OLDER
                how = {"was the older file still there": older, "in one folder": Path(source).parent == path.parent}
                seen.append((how, Path(source).read_bytes()))
            return real(source, target, **kwargs)

        return rename

    os.replace, os.rename = map(watch, usual)
    try:
        yield seen
    finally:
        os.replace, os.rename = usual


_OF_A_BATCH = (
    "each row of x is a piece of the tokens",
    "y is x, one token further on",
    "starts that are drawn",
    "all starts are equally likely",
    "starts come in no order",
    "another generator draws others",
    "the same generator draws the same",
    "shared generators that it moves",
    "x and y are copies",
)


def draw_and_look(candidate: Callable, args: tuple, kwargs: dict) -> dict[str, object]:
    """The tokens are all different, so that each tells where it stands. What a batch is, and which starts many have."""
    tokens, batch_size, sequence_length, seed = args
    place = {int(token): number for number, token in enumerate(tokens)}
    legal, shared = len(tokens) - sequence_length, SharedGenerators()

    def draw(rows: int, more: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
        batch = candidate(tokens, rows, sequence_length, torch.Generator().manual_seed(seed + more))
        require(is_pair(batch, torch.Tensor), batch, "two tensors, x and y")
        return batch[0], batch[1]

    def places(batch: torch.Tensor) -> torch.Tensor:
        return torch.tensor([[place.get(int(token), -9) for token in row] for row in batch.tolist()])

    x, y = draw(batch_size)
    seen = {
        "shapes of x and y": (tuple(x.shape), tuple(y.shape)),
        "dtypes of x and y": (str(x.dtype), str(y.dtype)),
    }
    if seen["shapes of x and y"] != ((batch_size, sequence_length),) * 2:
        return seen | dict.fromkeys(_OF_A_BATCH)
    many = places(draw(DRAWS * legal)[0][:, :1]).flatten()
    starts, counts = many.unique(return_counts=True)
    held = places(x)
    claims = [
        bool((held == held[:, :1] + torch.arange(sequence_length)).all()),
        bool((places(y) == held + 1).all()),
        starts.tolist(),
        bool(((counts - DRAWS).abs() < 6 * DRAWS**0.5).all()),
        legal == 1 or not torch.equal(many, many.sort().values),
        legal == 1 or not torch.equal(many, places(draw(DRAWS * legal, 1)[0][:, :1]).flatten()),
        torch.equal(x, draw(batch_size)[0]),
        shared.moved(),
        _are_copies(x, y, tokens),
    ]
    return seen | dict(zip(_OF_A_BATCH, claims, strict=True))


def _are_copies(x: torch.Tensor, y: torch.Tensor, tokens: np.ndarray) -> bool:
    before = tokens.copy()
    x.zero_(), y.zero_()
    changed = not np.array_equal(tokens, before)
    tokens[:] = before
    return not changed


_AFTER_A_BATCH = (
    "the seed alone decides",
    "one batch is not the next",
    "state_dict() draws no batch",
    "the state is a dict of tensors, numbers and text",
    "batch that another sampler goes on with",
    "and then with those that follow",
    "and a third one, from the state of the second",
    "and the first one, from the state it gave",
    "and once more from the same state",
    "another seed draws others",
    "shared generators that it moves",
)


def resume_and_look(candidate: type, args: tuple, kwargs: dict) -> dict[str, object]:
    """Draw, save, go on; then another sampler, which has drawn something else, goes on from what was saved."""
    *what, seed, drawn = args
    shared = SharedGenerators()
    one, fresh = candidate(*what, seed), candidate(*what, seed)
    from_start = [next(fresh) for _ in range(drawn + 3)]
    same_kind = all(is_pair(batch, torch.Tensor) for batch in from_start)
    require(same_kind, from_start[0], "the pair of tensors that get_batch gives")
    seen = {"shape of a batch": [tuple(part.shape) for part in from_start[0]]}
    if seen["shape of a batch"] != [tuple(part.shape) for part in get_batch(*what, generator=torch.Generator())]:
        return seen | dict.fromkeys(_AFTER_A_BATCH)
    first = _next(one, drawn)
    state = one.state_dict()
    saved, kept = _through_a_file(state)
    ahead = _next(one, 3)
    other, third = candidate(*what, seed + 1), candidate(*what, seed + 2)
    elsewhere = _next(other, 3)
    other.load_state_dict(saved)
    now = _next(other, 1)
    third.load_state_dict(_through_a_file(other.state_dict())[0])
    now += _next(other, 2)
    places = [number for number, batch in enumerate([*first, ahead[0]]) if _same(batch, now[0])]
    one.load_state_dict(state)
    back = _next(one, 3)
    one.load_state_dict(state)
    claims = [
        _same_all(first, from_start[:drawn]),
        not _same(ahead[0], ahead[1]),
        _same_all(ahead, from_start[drawn:]),
        kept and isinstance(state, dict),
        places[0] if places else "none of these",
        _same_all(ahead, now),
        _same_all(ahead[1:], _next(third, 2)),
        _same_all(ahead, back),
        _same_all(ahead, _next(one, 3)),
        not any(_same(batch, ours) for batch in elsewhere for ours in from_start),
        shared.moved(),
    ]
    return seen | dict(zip(_AFTER_A_BATCH, claims, strict=True))


def _next(sampler: Iterator, count: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return [next(sampler) for _ in range(count)]


def _through_a_file(state: object) -> tuple[object, bool]:
    """The state as a checkpoint gives it back; if it holds what a checkpoint may not, the state itself."""
    try:
        file = io.BytesIO()
        torch.save(state, file)
        file.seek(0)
        return torch.load(file, weights_only=True), True
    except Exception:  # pickle and torch raise half a dozen kinds
        return state, False


def _same(left: tuple, right: tuple) -> bool:
    return all(map(torch.equal, left, right))


def _same_all(left: list[tuple], right: list[tuple]) -> bool:
    return all(_same(a, b) for a, b in zip(left, right, strict=True))
