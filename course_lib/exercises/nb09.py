"""The exercises of notebook 09: bytes of a token file, reading and writing it safely, pages, batches, a position."""
import os
import shutil
from pathlib import Path

import numpy as np
import torch

from course_lib.data import get_batch
from course_lib.exercises import data_probes
from course_lib.exercises.data_probes import is_npy, npy, raw  # noqa: F401 - the cases call npy and raw
from course_lib.exercises.engine import case, exercise

# ---------------------------------------------------------------- 9.1


@exercise(
    notebook="09",
    hints=[
        "uint8 has 1 byte and holds 256 different numbers. How many do 2 bytes hold?",
        "The ids begin at 0, so the largest one is vocab_size - 1.",
    ],
    why="k bytes hold 256ᵏ different ids, 0 to 256ᵏ − 1: a vocabulary of 65,536 still fits two bytes. A raw file has "
    "no header, so its size is tokens × bytes of one.",
)
def token_file_bytes(num_tokens: int, vocab_size: int) -> int:
    """Size in bytes of a raw file of num_tokens token ids.

    The ids are 0 to vocab_size - 1; the dtype is the smallest of uint8, uint16, uint32 that holds
    them all.
    """
    for size in (1, 2):
        if vocab_size <= 256**size:
            return num_tokens * size
    return num_tokens * 4


token_file_bytes.cases(
    case("1_400_000_000_000, 32_000", "LLaMA's data"),
    case("15_000_000_000_000, 128_256", "Llama 3's data"),
    case("300, 65_536", "the largest vocabulary of uint16"),
    "300, 65_537",
    case("7, 256", "bytes as tokens"),
    "7, 257",
    "1000, 65",
    "1000, 200",
    "11, 50_257",
    "12, 40_000",
    "1, 2",
    "0, 100_000",
)


@token_file_bytes.misconception("The ids begin at 0: the largest is vocab_size - 1. 65,536 ids still fit 2 bytes.")
def largest_id_is_the_size(num_tokens, vocab_size):
    return num_tokens * (1 if vocab_size < 256 else 2 if vocab_size < 65536 else 4)


@token_file_bytes.misconception("Half of a signed dtype's numbers are negative. Unsigned, 2 bytes reach up to 65,535.")
def signed(num_tokens, vocab_size):
    return num_tokens * (1 if vocab_size <= 128 else 2 if vocab_size <= 32768 else 4)


@token_file_bytes.misconception("Those are bits. A file's size is counted in bytes, of 8 bits each.")
def bits(num_tokens, vocab_size):
    return 8 * token_file_bytes.reference(num_tokens, vocab_size)


@token_file_bytes.misconception("A batch is int64, since torch wants it so. On disk the smallest dtype will do.")
def always_int64(num_tokens, vocab_size):
    return 8 * num_tokens


@token_file_bytes.misconception("uint16 ends at 65,535. A vocabulary of 128,256 needs more, one of 256 less.")
def always_uint16(num_tokens, vocab_size):
    return 2 * num_tokens


@token_file_bytes.accepts
def by_numpy(num_tokens, vocab_size):
    return num_tokens * np.min_scalar_type(vocab_size - 1).itemsize


@token_file_bytes.accepts
def by_bits_of_the_largest_id(num_tokens, vocab_size):
    bits = max(1, (vocab_size - 1).bit_length())
    return num_tokens * next(size for size in (1, 2, 4) if bits <= 8 * size)


# ---------------------------------------------------------------- 9.2


@exercise(
    notebook="09",
    hints=[
        "Its name says nothing about what a file holds. Its first bytes do: a .npy begins with b'\\x93NUMPY'.",
        'open(path, "rb") reads bytes; .read(6) gives the first six.',
        'np.memmap has a mode. "r+", the default, lets writes through to the file.',
    ],
    why='Six bytes tell a .npy from raw tokens, whatever the file is called. With mode "r" a stray assignment raises; '
    'with "r+" it would change the data on disk. And np.memmap refuses by itself what is empty or not whole.',
)
def map_tokens(path: str, dtype: str) -> np.memmap:
    """Map a file of raw tokens into memory. Nothing can be written through the result.

    ValueError if the file is a .npy, is empty, or is no whole number of tokens long. Such a file
    may have any name, and so may one of raw tokens. Nothing is loaded but what is needed for that.
    """
    with open(path, "rb") as file:
        if file.read(6) == b"\x93NUMPY":
            raise ValueError(f"{path} is a .npy; raw tokens are asked for.")
    return np.memmap(path, dtype=dtype, mode="r")


map_tokens.cases(
    case('"tokens.bin", raw([5, 0, 65_535], "uint16"), "uint16"', "raw tokens"),
    case('"data.npy", raw([5, 6, 7], "int32"), "int32"', "raw tokens under the name of a .npy"),
    case('"data.npy", npy([5, 6, 7], "uint16"), "uint16"', "a .npy"),
    case('"tokens.bin", npy([5, 6, 7], "uint32"), "uint32"', "a .npy under another name"),
    '"t", raw(list(range(100)), "uint8"), "uint8"',
    '"train.npy", raw([1, 2], "uint32"), "uint16"',
    '"empty.bin", b"", "uint16"',
    '"cut.bin", raw([5, 6, 7], "uint16")[:-1], "uint16"',
    '"NUMPY", b"NUMPY\\x93", "uint16"',
    '"t.bin", b"\\x93NUMPX\\x93NUMPY..", "uint16"',
    case('"long.bin", bytes(4_000_000), "uint16"', "a long file"),
)
map_tokens.probe(data_probes.map_and_look)


@map_tokens.misconception('np.memmap\'s default mode is "r+": a write through your map changes the data on disk.')
def default_mode(path, dtype):
    _refuse_a_npy(path)
    return np.memmap(path, dtype=dtype)


@map_tokens.misconception('Mode "c" keeps writes in memory and raises nothing. Read-only is mode "r".')
def copy_on_write(path, dtype):
    _refuse_a_npy(path)
    return np.memmap(path, dtype=dtype, mode="c")


@map_tokens.misconception("np.memmap reads what is there, and of a .npy that is the header too. Look for it first.")
def no_look_at_the_header(path, dtype):
    return np.memmap(path, dtype=dtype, mode="r")


@map_tokens.misconception("A name is no format: raw tokens may be called data.npy, and a .npy tokens.bin.")
def trusts_the_name(path, dtype):
    if path.endswith(".npy"):
        raise ValueError(path)
    return np.memmap(path, dtype=dtype, mode="r")


@map_tokens.misconception("np.fromfile reads the whole file into memory. A map loads what is used.")
def reads_it_all(path, dtype):
    _refuse_a_npy(path)
    if os.path.getsize(path) % np.dtype(dtype).itemsize or not os.path.getsize(path):
        raise ValueError(path)
    return np.fromfile(path, dtype=dtype)


def _refuse_a_npy(path):
    if is_npy(path):
        raise ValueError(path)


@map_tokens.accepts
def by_numpys_own_reader(path, dtype):
    with open(path, "rb") as file:
        try:
            np.lib.format.read_magic(file)
        except ValueError:
            return np.memmap(path, dtype, "r")
    raise ValueError("a .npy")


@map_tokens.accepts
def looked_at_through_the_map(path, dtype):
    tokens = np.memmap(path, dtype=dtype, mode="r")
    if tokens.view(np.uint8)[:6].tobytes() == b"\x93NUMPY":
        raise ValueError("a .npy")
    return tokens


# ---------------------------------------------------------------- 9.3


@exercise(
    notebook="09",
    hints=[
        "np.iinfo(dtype) has .min and .max. Compare before you convert: astype cuts off what does not fit.",
        "Write to another name in the same folder first. When is that file whole?",
        "os.replace(beside, path) gives it its name and drops the older file in the same moment.",
    ],
    why="astype makes 4464 of 70000, in silence. And a rename is all or nothing: whoever opens `path` finds the older "
    "file or the new one, never half of either. Within one folder it stays so; across disks it would become a copy.",
)
def save_tokens(path: str, tokens: np.ndarray, dtype: str) -> None:
    """Write tokens to a raw file of the given dtype, safely.

    ValueError if a token does not fit dtype, and then an older file at `path` stays as it is. Else
    the new file is written beside it, under another name in the same folder, and takes its place
    once it is whole. Nothing else is left in the folder.
    """
    limits = np.iinfo(dtype)
    if tokens.min() < limits.min or tokens.max() > limits.max:
        raise ValueError(f"a token does not fit {dtype}")
    tokens.astype(dtype).tofile(f"{path}.part")
    os.replace(f"{path}.part", path)


save_tokens.cases(
    case('"tokens.bin", np.array([5, 0, 65_535]), "uint16"', "the largest token that fits"),
    case('"tokens.bin", np.array([5, 65_536]), "uint16"', "one that does not"),
    '"tokens.bin", np.array([70_000, 1, 2, 3], dtype=np.int32), "uint16"',
    '"tokens.bin", np.array([70_000, 1, 2, 3], dtype=np.int32), "uint32"',
    case('"tokens.bin", np.array([3, -1, 4]), "uint16"', "a negative one"),
    '"tokens.bin", np.array([-100, 7]), "uint32"',
    case('"tokens.bin", np.arange(10, dtype=np.uint8), "int64"', "a larger dtype"),
    '"tokens.bin", np.arange(300)[::-3], "int16"',
    '"tokens.bin", np.array([256]), "uint8"',
    '"tokens.bin", np.array([-32_768, 32_767]), "int16"',
    '"tokens.bin", np.array([-32_769, 5]), "int16"',
    '"tokens.bin", np.array([32_768, 5]), "int16"',
)
save_tokens.probe(data_probes.save_and_look)


def _require_fit(tokens, dtype):
    if tokens.min() < np.iinfo(dtype).min or tokens.max() > np.iinfo(dtype).max:
        raise ValueError(dtype)


@save_tokens.misconception("astype cuts off what does not fit: 70000 becomes 4464, another token. Compare first.")
def wraps_around(path, tokens, dtype):
    tokens.astype(dtype).tofile(path + ".part")
    os.replace(path + ".part", path)


@save_tokens.misconception("That is the upper end. A token below 0 does not fit an unsigned dtype either.")
def from_above_alone(path, tokens, dtype):
    if tokens.max() > np.iinfo(dtype).max:
        raise ValueError(dtype)
    wraps_around(path, tokens, dtype)


@save_tokens.misconception("You wrote over the older file. Killed half-way, it is lost and the new one not yet there.")
def writes_over(path, tokens, dtype):
    _require_fit(tokens, dtype)
    tokens.astype(dtype).tofile(path)


@save_tokens.misconception("You deleted the older file first. os.replace drops it in the moment of the rename.")
def deletes_first(path, tokens, dtype):
    _require_fit(tokens, dtype)
    tokens.astype(dtype).tofile(path + ".part")
    os.remove(path)
    os.rename(path + ".part", path)


@save_tokens.misconception("The file got its name while bytes still waited in the buffer. Close it first.")
def renames_an_open_file(path, tokens, dtype):
    _require_fit(tokens, dtype)
    with open(path + ".part", "wb") as file:
        file.write(tokens.astype(dtype).tobytes())
        os.replace(path + ".part", path)


@save_tokens.misconception("np.save writes a header before the tokens. A raw file is tokens and nothing else.")
def writes_a_npy(path, tokens, dtype):
    _require_fit(tokens, dtype)
    with open(path + ".part", "wb") as file:
        np.save(file, tokens.astype(dtype))
    os.replace(path + ".part", path)


@save_tokens.accepts
def compared_afterwards(path, tokens, dtype):
    converted = np.ascontiguousarray(tokens, dtype)
    if (converted != tokens).any():
        raise ValueError("not the same tokens any more")
    with open(path + "~", "wb") as file:
        file.write(converted)
    shutil.move(path + "~", path)


@save_tokens.accepts
def with_pathlib(path, tokens, dtype):
    if not np.array_equal(tokens.astype(dtype), tokens):
        raise ValueError("does not fit")
    beside = Path(path).with_suffix(".new")
    beside.write_bytes(tokens.astype(dtype).tobytes())
    beside.replace(path)


# ---------------------------------------------------------------- 9.4


@exercise(
    notebook="09",
    hints=[
        "Count in bytes first: at which byte does a sequence begin, and which is its last?",
        "Byte b lies on page b // page_size. The last byte of a sequence is one before the next token's first.",
        "Two sequences may share a page, and it is loaded once. A set counts each page once.",
    ],
    why="A page is loaded whole and once. Where a sequence begins decides whether it lies on one page more: "
    "2,050 bytes take one page or two of 4,096.",
)
def pages_touched(starts: list[int], length: int, itemsize: int, page_size: int) -> int:
    """How many pages a batch of sequences loads from a raw file.

    A sequence holds `length` tokens of `itemsize` bytes, from token number start on; starts count
    tokens, page_size counts bytes. The file begins at the beginning of a page.
    """
    pages = set()
    for start in starts:
        first = start * itemsize // page_size
        last = ((start + length) * itemsize - 1) // page_size
        for page in range(first, last + 1):
            pages.add(page)
    return len(pages)


pages_touched.cases(
    case("[0], 1, 2, 4096", "one token"),
    case("[2000], 100, 2, 4096", "across the end of a page"),
    case("[1024], 1024, 2, 4096", "up to the end of a page"),
    case("[5, 700, 9000], 1025, 2, 4096", "two that share a page"),
    "[10, 10, 10], 300, 4, 4096",
    "[0, 2048, 4096, 6144], 2048, 2, 4096",
    "[123_456, 7, 99_999, 50_000], 5000, 4, 4096",
    "[1000, 100, 3000], 10, 8, 16384",
    "[], 64, 2, 4096",
    "[63, 129], 1, 1, 64",
    "[4095], 4098, 1, 4096",
)


def _spans(starts, length, itemsize, page_size):
    return [(s * itemsize // page_size, ((s + length) * itemsize - 1) // page_size) for s in starts]


@pages_touched.misconception("Sequences may share a page, and what is loaded is not loaded again. Count it once.")
def counts_shared_pages_twice(starts, length, itemsize, page_size):
    return sum(last - first + 1 for first, last in _spans(starts, length, itemsize, page_size))


@pages_touched.misconception("Bytes over page size is the least. A sequence that begins late on a page needs one more.")
def as_if_aligned(starts, length, itemsize, page_size):
    return len(starts) * -(-length * itemsize // page_size)


@pages_touched.misconception("You counted tokens as bytes. A page holds page_size / itemsize tokens.")
def tokens_as_bytes(starts, length, itemsize, page_size):
    return pages_touched.reference(starts, length, 1, page_size)


@pages_touched.misconception("A sequence that ends with its page does not touch the next: its last byte is one before.")
def one_byte_too_far(starts, length, itemsize, page_size):
    return len({p for s in starts for p in range(s * itemsize // page_size, (s + length) * itemsize // page_size + 1)})


@pages_touched.misconception("That is the page where each begins. A sequence may go on over the next ones.")
def first_pages_alone(starts, length, itemsize, page_size):
    return len({first for first, _ in _spans(starts, length, itemsize, page_size)})


@pages_touched.accepts
def byte_by_byte(starts, length, itemsize, page_size):
    span = range(length * itemsize)
    return len({(s * itemsize + b) // page_size for s in starts for b in (*span[::page_size], span[-1])})


@pages_touched.accepts
def marked_in_an_array(starts, length, itemsize, page_size):
    loaded = np.zeros(10**6, dtype=bool)
    for first, last in _spans(starts, length, itemsize, page_size):
        loaded[first : last + 1] = True
    return int(loaded.sum())


# ---------------------------------------------------------------- 9.5


@exercise(
    notebook="09",
    hints=[
        "y needs one token after the last one of x. Where may x begin at the latest? torch.randint leaves its end out.",
        "tokens[starts[:, None] + np.arange(n)] takes n tokens from each start, with no loop. How many do x and y need "
        "together?",
        ".astype(np.int64) makes of any token dtype what torch.nn.Embedding and F.cross_entropy take.",
    ],
    why="There are len(tokens) - sequence_length legal starts, 0 included, and randint leaves out its upper end: both "
    "counts are the same number. x and y are one window of sequence_length + 1 tokens, without its last and without "
    "its first.",
)
def next_token_batch(
    tokens: np.ndarray, batch_size: int, sequence_length: int, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """A random batch: x and y, both int64 of shape (batch_size, sequence_length).

    A row of x is sequence_length tokens in a row; in y stands, at each place, the token that
    follows. Starts are drawn with the generator alone, uniformly, from all for which there are
    enough tokens. Both are copies: whoever writes into a batch does not change the tokens.
    """
    starts = torch.randint(len(tokens) - sequence_length, (batch_size,), generator=generator).numpy()
    windows = torch.from_numpy(tokens[starts[:, None] + np.arange(sequence_length + 1)].astype(np.int64))
    return windows[:, :-1], windows[:, 1:]


next_token_batch.cases(
    case("np.arange(100, 118, dtype=np.uint16), 4, 8, 0", "uint16"),
    case("np.arange(30, 40), 3, 2, 1", "int64"),
    case("np.arange(9, dtype=np.int32), 5, 8, 2", "one legal start"),
    "np.arange(60_000, 60_020, dtype=np.uint16)[::-1], 1, 5, 3",
    case("np.arange(12, dtype=np.uint8), 2, 1, 4", "sequences of one token"),
    "np.array([7, 3, 9, 1, 0, 5, 4], dtype=np.uint32), 6, 3, 5",
    case("np.arange(50, 59), 1, 4, 6", "a batch of one"),
)
next_token_batch.probe(data_probes.draw_and_look)


def _starts(tokens, batch_size, sequence_length, generator, more=0):
    return torch.randint(len(tokens) - sequence_length + more, (batch_size,), generator=generator).numpy()


def _pair(tokens, starts, sequence_length):
    windows = torch.from_numpy(tokens[starts[:, None] + np.arange(sequence_length + 1)])
    return windows[:, :-1].long(), windows[:, 1:].long()


@next_token_batch.misconception("randint leaves out its upper end already. With one less, the last start is lost.")
def misses_the_last_start(tokens, batch_size, sequence_length, generator):
    return _pair(tokens, _starts(tokens, batch_size, sequence_length, generator, -1), sequence_length)


@next_token_batch.misconception("From your last start x just fits, but its last token has no next one for y.")
def one_start_too_many(tokens, batch_size, sequence_length, generator):
    return _pair(tokens, _starts(tokens, batch_size, sequence_length, generator, 1), sequence_length)


@next_token_batch.misconception("y is x: a model that copies its input would be perfect. y is the next token of each.")
def y_is_x(tokens, batch_size, sequence_length, generator):
    x, _ = next_token_batch.reference(tokens, batch_size, sequence_length, generator)
    return x, x.clone()


@next_token_batch.misconception("You shifted to the left: y shows the token before. The model guesses the next one.")
def shifted_the_wrong_way(tokens, batch_size, sequence_length, generator):
    return next_token_batch.reference(tokens, batch_size, sequence_length, generator)[::-1]


@next_token_batch.misconception("The tokens are still in the file's dtype: cross_entropy takes int64 targets.")
def keeps_the_files_dtype(tokens, batch_size, sequence_length, generator):
    x, y = next_token_batch.reference(tokens, batch_size, sequence_length, generator)
    return tuple(torch.from_numpy(batch.numpy().astype(tokens.dtype)) for batch in (x, y))


@next_token_batch.misconception("You drew from torch's own generator. Pass on the one that you were given.")
def from_torchs_own_generator(tokens, batch_size, sequence_length, generator):
    return next_token_batch.reference(tokens, batch_size, sequence_length, None)


@next_token_batch.accepts
def slice_by_slice(tokens, batch_size, sequence_length, generator):
    starts = torch.randint(0, len(tokens) - sequence_length, size=(batch_size,), generator=generator).tolist()
    x = np.stack([tokens[s : s + sequence_length] for s in starts]).astype(np.int64)
    y = np.stack([tokens[s + 1 : s + 1 + sequence_length] for s in starts]).astype(np.int64)
    return torch.from_numpy(x), torch.from_numpy(y)


@next_token_batch.accepts
def by_a_sliding_window(tokens, batch_size, sequence_length, generator):
    windows = torch.from_numpy(tokens.astype(np.int64)).unfold(0, sequence_length + 1, 1)
    drawn = windows[torch.randint(len(windows), (batch_size,), generator=generator)]
    return drawn[:, :-1], drawn[:, 1:]


# ---------------------------------------------------------------- 9.6


@exercise(
    notebook="09",
    hints=[
        "Which one thing decides the next batch? Give the sampler a torch.Generator of its own.",
        "generator.get_state() is a tensor with all that decides what it draws next; set_state brings it back.",
        "A state_dict is a dict. What stands in it must not change while the sampler goes on.",
    ],
    why="The tokens do not move; the generator does. Its state is the position, 5,056 bytes on the CPU, and get_state "
    "returns a copy that stays when the sampler goes on. The seed alone says where it began, not how far it came.",
)
class ResumableSampler:
    """Draws batches without end, and can be told to go on where another sampler stood.

    The seed alone decides the batches, whatever else is drawn, and another seed gives others.
    Generators that all code shares stay as they are. A state is a dict of tensors, numbers and
    text; loaded into any sampler over the same tokens, it goes on with the same batches.
    """

    def __init__(self, tokens: np.ndarray, batch_size: int, sequence_length: int, seed: int):
        self.what = tokens, batch_size, sequence_length
        self.generator = torch.Generator().manual_seed(seed)

    def __next__(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The next batch: get_batch(tokens, batch_size, sequence_length, generator=…)."""
        return get_batch(*self.what, generator=self.generator)

    def state_dict(self) -> dict:
        """All that decides which batches come next."""
        return {"generator": self.generator.get_state()}

    def load_state_dict(self, state: dict) -> None:
        """Go on where the sampler stood that gave this state."""
        self.generator.set_state(state["generator"])


ResumableSampler.cases(
    case("np.arange(5000, dtype=np.uint16), 4, 16, 0, 3", "after three batches"),
    case("np.arange(5000, dtype=np.uint16), 4, 16, 1, 0", "before the first"),
    "np.arange(900), 2, 7, 5, 1",
    case("np.arange(10_000, dtype=np.int32), 8, 3, 2, 40", "after forty"),
)
ResumableSampler.probe(data_probes.resume_and_look)


class _Sampler:
    """What the wrong answers share: their `state_dict` and `load_state_dict` differ."""

    def __init__(self, tokens, batch_size, sequence_length, seed):
        self.what, self.seed, self.batches = (tokens, batch_size, sequence_length), seed, 0
        self.generator = torch.Generator().manual_seed(seed)

    def __next__(self):
        self.batches += 1
        return get_batch(*self.what, generator=self.generator)

    def state_dict(self):
        return {"seed": self.seed, "batches": self.batches}


@ResumableSampler.misconception("The seed says where the sampler began, not how far it has come: it begins anew.")
class BeginsAnew(_Sampler):
    def load_state_dict(self, state):
        self.generator.manual_seed(state["seed"])


@ResumableSampler.misconception("You noted the number of batches, but the generator does not know: it has to move.")
class CountsAlone(_Sampler):
    def load_state_dict(self, state):
        self.batches = state["batches"]


@ResumableSampler.misconception("That is the generator itself, and it goes on drawing. Save its state, a copy.")
class SavesTheGenerator(_Sampler):
    def state_dict(self):
        return {"generator": self.generator}

    def load_state_dict(self, state):
        self.generator = state["generator"]


@ResumableSampler.misconception("Whatever else draws from torch's own generator shifts your batches. Keep your own.")
class SharesTorchsGenerator(_Sampler):
    def __init__(self, tokens, batch_size, sequence_length, seed):
        super().__init__(tokens, batch_size, sequence_length, seed)
        self.generator = torch.default_generator.manual_seed(seed)

    def state_dict(self):
        return {"generator": torch.get_rng_state()}

    def load_state_dict(self, state):
        torch.set_rng_state(state["generator"])


@ResumableSampler.misconception("Your position is that before the last batch, which is drawn twice now.")
class OneBatchBehind(_Sampler):
    def load_state_dict(self, state):
        self.generator.manual_seed(state["seed"])
        for _ in range(state["batches"] - 1):
            next(self)


@ResumableSampler.accepts
class DrawsAgain(_Sampler):
    def load_state_dict(self, state):
        self.__init__(*self.what, state["seed"])
        for _ in range(state["batches"]):
            next(self)


@ResumableSampler.accepts
class ASeedForEachBatch(_Sampler):
    def __next__(self):
        self.batches += 1
        return get_batch(*self.what, generator=torch.Generator().manual_seed(self.seed * 1_000_003 + self.batches))

    def load_state_dict(self, state):
        self.seed, self.batches = state["seed"], state["batches"]
