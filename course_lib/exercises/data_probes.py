"""What notebook 09's exercises are looked at by: files in a folder of their own, many batches, a saved position."""
import io
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch

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
        tokens = candidate(str(path), dtype)
        seen = {
            "the tokens": np.asarray(tokens).tolist(),
            "the dtype": np.asarray(tokens).dtype.name,
            "is a map, so that only what is used is loaded": isinstance(tokens, np.memmap),
            "a write": _what_a_write_does(tokens, path, contents),
        }
        del tokens  # Windows deletes no file that is mapped
    return seen


def _what_a_write_does(tokens: np.ndarray, path: Path, contents: bytes) -> str:
    try:
        tokens[0] = 1 - min(int(tokens[0]), 1)
    except (ValueError, TypeError):
        return "is refused"
    getattr(tokens, "flush", list)()
    return "changes the copy in memory" if path.read_bytes() == contents else "changes the file"


def save_and_look(candidate: Callable, args: tuple, kwargs: dict) -> dict[str, object]:
    """An older file lies there. What the folder holds afterwards, and how things stood when the file got its name."""
    tokens, dtype = args
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = Path(folder, "tokens.bin")
        path.write_bytes(OLDER)
        with _watching_renames(path) as renames:
            try:
                outcome = candidate(str(path), tokens, dtype)
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


def draw_and_look(candidate: Callable, args: tuple, kwargs: dict) -> dict[str, object]:
    """The tokens are all different, so that each tells where it stands. What a batch is, and which starts many have."""
    tokens, batch_size, sequence_length, seed = args
    place = {int(token): number for number, token in enumerate(tokens)}
    legal = len(tokens) - sequence_length

    def draw(rows: int) -> tuple[torch.Tensor, torch.Tensor]:
        return candidate(tokens, rows, sequence_length, torch.Generator().manual_seed(seed))

    def places(batch: torch.Tensor) -> torch.Tensor:
        return torch.tensor([[place.get(int(token), -9) for token in row] for row in batch.tolist()])

    before = torch.get_rng_state()
    (x, y), (again, _), (many, _) = draw(batch_size), draw(batch_size), draw(DRAWS * legal)
    starts, counts = places(many[:, :1]).unique(return_counts=True)
    along = torch.arange(sequence_length)
    held = places(x)
    seen = {
        "shapes of x and y": (tuple(x.shape), tuple(y.shape)),
        "dtypes of x and y": (str(x.dtype), str(y.dtype)),
        "each row of x is a piece of the tokens": bool((held == held[:, :1] + along).all()),
        "y is x, one token further on": bool((places(y) == held + 1).all()),
        "starts that are drawn": starts.tolist(),
        "all starts are equally likely": bool(((counts - DRAWS).abs() < 6 * DRAWS**0.5).all()),
        "the generator alone decides": torch.equal(x, again) and torch.equal(torch.get_rng_state(), before),
    }
    x.zero_()  # a batch is a copy: the tokens, an input, have to stay as they are
    return seen


def resume_and_look(candidate: type, args: tuple, kwargs: dict) -> dict[str, object]:
    """Draw, save, go on; then another sampler, which has drawn something else, goes on from what was saved."""
    *what, seed, drawn = args
    one, before = candidate(*what, seed), torch.get_rng_state()
    first = [next(one)[0] for _ in range(drawn)]
    state = one.state_dict()
    saved, kept = _through_a_file(state)
    ahead = [next(one) for _ in range(3)]
    seen = {
        "the seed alone decides": _same(first, [next(fresh)[0] for fresh in [candidate(*what, seed)] for _ in first]),
        "one batch is not the next": not torch.equal(ahead[0][0], ahead[1][0]),
        "the state is tensors, numbers and text": kept,
    }
    other = candidate(*what, seed + 1)
    elsewhere = next(other)[0]
    other.load_state_dict(saved)
    now = [next(other) for _ in range(3)]
    drawn_first = [number for number, x in enumerate([*first, ahead[0][0]]) if torch.equal(x, now[0][0])]
    seen["batch that another sampler goes on with"] = drawn_first[0] if drawn_first else "none of these"
    seen["and then with those that follow"] = _same_pairs(ahead, now)
    one.load_state_dict(state)
    seen["and the same one, from the state it gave"] = _same_pairs(ahead, [next(one) for _ in range(3)])
    one.load_state_dict(state)
    seen["and once more from the same state"] = _same_pairs(ahead, [next(one) for _ in range(3)])
    seen["another seed draws others"] = not torch.equal(elsewhere, next(candidate(*what, seed))[0])
    seen["torch's own generator is left alone"] = torch.equal(torch.get_rng_state(), before)
    return seen


def _through_a_file(state: object) -> tuple[object, bool]:
    """The state as a checkpoint gives it back; if it holds what a checkpoint may not, the state itself."""
    try:
        file = io.BytesIO()
        torch.save(state, file)
        file.seek(0)
        return torch.load(file, weights_only=True), True
    except Exception:  # pickle and torch raise half a dozen kinds
        return state, False


def _same(left: list[torch.Tensor], right: list[torch.Tensor]) -> bool:
    return all(map(torch.equal, left, right))


def _same_pairs(left: list[tuple], right: list[tuple]) -> bool:
    return all(_same(list(a), list(b)) for a, b in zip(left, right, strict=True))
