"""Token files and batches: what is written is read, every legal start is drawn, and only what is needed is loaded."""
import collections
import errno
import mmap
import os
import subprocess
import sys
import threading

import numpy as np
import psutil
import pytest
import torch
from sentences import sentence

from course_lib.data import TokenSampler, get_batch, open_tokens, write_tokens

GIB = 2**30


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


# ---------------------------------------------------------------- files


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, "uint32", np.dtype("<u2"), np.int32, np.int64, np.uint64, int])
@pytest.mark.parametrize("form", [list, tuple, np.array, torch.tensor, lambda ids: np.array(ids, ">i4"), np.uint16])
def test_what_is_written_is_read(tmp_path, dtype, form):
    ids = [0, 1, 255, 7, 128]
    write_tokens(tmp_path / "t.bin", form(ids), dtype)
    read = open_tokens(tmp_path / "t.bin", dtype)
    assert read.tolist() == ids and read.dtype == np.dtype(dtype)
    assert (tmp_path / "t.bin").read_bytes() == b"".join(i.to_bytes(np.dtype(dtype).itemsize, "little") for i in ids)
    assert os.listdir(tmp_path) == ["t.bin"]


def test_a_file_of_many_chunks_from_a_map_a_slice_and_a_range(tmp_path):
    long = np.arange(5 * 2**19 + 3, dtype=np.uint32) % 65536
    write_tokens(tmp_path / "long.bin", long)
    read = open_tokens(str(tmp_path / "long.bin"))
    assert np.array_equal(read, long)
    write_tokens(tmp_path / "copy.bin", read[::-2], np.int32)
    assert np.array_equal(open_tokens(tmp_path / "copy.bin", np.int32), long[::-2])
    write_tokens(tmp_path / "range.bin", range(3, 65536))
    assert np.array_equal(open_tokens(tmp_path / "range.bin"), np.arange(3, 65536))


def test_the_map_is_read_only_and_agrees_with_numpy_and_torch(tmp_path):
    path = tmp_path / "t.bin"
    write_tokens(path, [5, 6, 65535])
    tokens = open_tokens(path)
    assert isinstance(tokens, np.memmap) and tokens.mode == "r"
    with pytest.raises(ValueError, match="read-only"):
        tokens[0] = 1
    assert np.array_equal(tokens, np.fromfile(path, "<u2"))
    assert torch.equal(torch.from_file(str(path), size=3, dtype=torch.uint16).long(), torch.tensor([5, 6, 65535]))


BAD_TOKENS = [  # tokens, dtype, the error, and what its sentence has to tell
    ([1, 2, 70000], np.uint16, ValueError, ["tokens[2]", "70000", "uint16", "65535"]),
    ([1, -2, 70000], np.uint16, ValueError, ["tokens[1]", "-2", "0 to 65535"]),
    ([-100], np.int64, ValueError, ["tokens[0]", "-100", "int64"]),
    ([256], np.uint8, ValueError, ["256", "uint8", "255"]),
    ([0, 2**80], np.uint32, ValueError, ["tokens[1]", str(2**80), "uint32"]),
    ([2**63], np.uint64, ValueError, [str(2**63), "uint64"]),
    (np.arange(3 * 2**20) // 2**5, np.uint16, ValueError, ["tokens[2097152]", "65536"]),
    (torch.tensor([3, -1]), np.uint16, ValueError, ["tokens[1]", "-1"]),
    ([], np.uint16, ValueError, ["tokens", "empty", "at least one"]),
    (torch.tensor([], dtype=torch.int64), np.uint16, ValueError, ["empty"]),
    ([1, 2.0], np.uint16, TypeError, ["tokens[1]", "float", "2.0", "whole number"]),
    ([True, 2], np.uint16, TypeError, ["tokens[0]", "True"]),
    ([[1, 2], [3]], np.uint16, TypeError, ["tokens[0]", "list"]),
    ("hello", np.uint16, TypeError, ["tokens", "str", "whole numbers"]),
    (np.array([1.0]), np.uint16, TypeError, ["float64", "whole numbers"]),
    (np.array(["a"]), np.uint16, TypeError, ["whole numbers"]),
    (torch.tensor([True]), np.uint16, TypeError, ["bool"]),
    (torch.ones(3, dtype=torch.bfloat16), np.uint16, TypeError, ["bfloat16"]),
    (np.ones((2, 3), int), np.uint16, ValueError, ["(2, 3)", "one row"]),
    (torch.tensor(3), np.uint16, ValueError, ["()", "one row"]),
    (iter([1]), np.uint16, TypeError, ["tokens", "list_iterator", "Sequence"]),
    ([1], np.float32, TypeError, ["dtype", "float32", "integer"]),
    ([1], torch.uint16, TypeError, ["dtype", "torch.uint16", "np.uint16"]),
    ([1], "tokens", TypeError, ["dtype", "'tokens'", "integer"]),
    ([1], None, TypeError, ["dtype", "None", "integer"]),
    ([1], bool, TypeError, ["dtype", "bool"]),
    ([1], [], TypeError, ["dtype", "integer"]),
    ([1], ">u2", ValueError, ["dtype", ">u2", "little-endian", "<u2"]),
    (torch.zeros(3, dtype=torch.int64, device="meta"), np.uint16, ValueError, ["meta", "all its numbers"]),
    (torch.ones(3, dtype=torch.int64).to_sparse(), np.uint16, ValueError, ["layout sparse_coo", "all its numbers"]),
    (torch.empty(3, dtype=torch.bits8), np.uint16, TypeError, ["bits8", "whole numbers"]),
]


@pytest.mark.parametrize(("tokens", "dtype", "error", "told"), BAD_TOKENS)
def test_bad_tokens_get_one_sentence_and_the_older_file_stays(tmp_path, tokens, dtype, error, told):
    path = tmp_path / "t.bin"
    write_tokens(path, [1, 2, 3])
    before = path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino
    with pytest.raises(error) as raised:
        write_tokens(path, tokens, dtype)
    text = sentence(str(raised.value))
    assert text.startswith("write_tokens(): ") and all(word in text for word in told), text
    assert (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino) == before
    assert os.listdir(tmp_path) == ["t.bin"]


def npy(path):
    with path.open("wb") as file:
        np.save(file, np.arange(4, dtype=np.uint16))


BAD_FILES = [
    (npy, np.uint16, ValueError, [".npy", "header", "raw tokens", "mmap_mode"]),
    (lambda path: path.write_bytes(b""), np.uint16, ValueError, ["empty"]),
    (lambda path: path.write_bytes(b"12345"), np.uint16, ValueError, ["5 bytes", "uint16", "2 bytes"]),
    (lambda path: write_tokens(path, [1, 2, 3]), np.uint32, ValueError, ["6 bytes", "uint32", "another dtype"]),
    (lambda path: path.write_bytes(b"1"), np.int64, ValueError, ["1 byte", "int64"]),
    (lambda path: write_tokens(path, [1, 2]), np.float16, TypeError, ["dtype", "float16", "integer"]),
    (lambda path: write_tokens(path, [1, 2]), torch.int32, TypeError, ["dtype", "torch.int32"]),
    (lambda path: write_tokens(path, [1, 2]), ">u4", ValueError, ["big-endian"]),
    (lambda path: None, np.uint16, FileNotFoundError, ["not there"]),
    (lambda path: path.mkdir(), np.uint16, FileNotFoundError, ["a folder"]),
]


@pytest.mark.parametrize(("make", "dtype", "error", "told"), BAD_FILES)
def test_bad_files_get_one_sentence_and_stay_as_they_are(tmp_path, make, dtype, error, told):
    path = tmp_path / "data.npy"  # the name says nothing
    make(path)
    before = path.is_file() and (path.read_bytes(), path.stat().st_mtime_ns)
    with pytest.raises(error) as raised:
        open_tokens(path, dtype)
    text = sentence(str(raised.value).replace(str(path), "data.npy"))
    assert text.startswith("open_tokens(): ") and all(word in text for word in told), text
    assert (path.is_file() and (path.read_bytes(), path.stat().st_mtime_ns)) == before


def test_raw_tokens_under_the_name_of_a_npy_are_fine(tmp_path):
    np.arange(5, dtype=np.uint16).tofile(tmp_path / "data.npy")
    assert open_tokens(tmp_path / "data.npy").tolist() == [0, 1, 2, 3, 4]


def test_where_there_is_nowhere_to_write(tmp_path):
    for path, word in ((tmp_path / "no" / "t.bin", "no folder"), (tmp_path, "is a folder")):
        with pytest.raises(OSError, match=word) as raised:
            write_tokens(path, [1])
        assert sentence(str(raised.value).replace(str(tmp_path), "here"))
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such pipes")
def test_what_is_no_plain_file_stays_what_it_is(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for what in (lambda: write_tokens(tmp_path / "pipe", [1]), lambda: open_tokens(tmp_path / "pipe")):
        with pytest.raises(OSError, match="is no plain file"):
            what()
    assert (tmp_path / "pipe").is_fifo() and os.listdir(tmp_path) == ["pipe"]
    with pytest.raises(ValueError, match="without the character 0"):
        write_tokens("a\0b", [1])


def test_a_full_disk_is_told_of_and_loses_nothing(tmp_path, monkeypatch):
    path = tmp_path / "t.bin"
    write_tokens(path, [1, 2, 3])
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left on device")))
    with pytest.raises(OSError, match="No space left on device; what it held before is untouched") as raised:
        write_tokens(path, [4])
    assert raised.value.errno == errno.ENOSPC and sentence(str(raised.value).replace(str(tmp_path), "here"))
    assert open_tokens(path).tolist() == [1, 2, 3] and os.listdir(tmp_path) == ["t.bin"]


def test_a_link_goes_on_pointing_and_an_open_map_keeps_its_tokens(tmp_path):
    write_tokens(tmp_path / "t.bin", [1, 2, 3])
    (tmp_path / "link.bin").symlink_to("t.bin")
    old = open_tokens(tmp_path / "t.bin")
    write_tokens(tmp_path / "link.bin", [4, 5])
    assert (tmp_path / "link.bin").is_symlink()
    assert open_tokens(tmp_path / "t.bin").tolist() == [4, 5] and old.tolist() == [1, 2, 3]


def test_a_writer_that_is_killed_leaves_the_older_file(tmp_path):
    write_tokens(tmp_path / "t.bin", [1, 2, 3])
    killed = "import os, sys, numpy as np; from course_lib import data\nos.fsync = lambda _: os._exit(9)\n"
    killed += "data.write_tokens(sys.argv[1], np.zeros(10**6, int))"
    assert subprocess.run([sys.executable, "-c", killed, tmp_path / "t.bin"], timeout=300).returncode == 9
    assert open_tokens(tmp_path / "t.bin").tolist() == [1, 2, 3]


# ---------------------------------------------------------------- memory


def sparse(path, size):
    """A file of so many bytes, all zeros, none of which takes room on the disk."""
    with path.open("wb") as file:
        file.truncate(size)
    return path


def resident_bytes(path) -> int:
    """Bytes of a mapped file that this process has in memory, as the system counts them."""
    return sum(one.rss for one in psutil.Process().memory_maps() if one.path == str(path))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems do not tell a file's resident memory")
@pytest.mark.parametrize(("batch_size", "sequence_length", "dtype"), [(64, 1024, np.uint16), (16, 4096, np.uint32)])
def test_no_more_pages_are_loaded_than_the_batch_lies_on(tmp_path, batch_size, sequence_length, dtype):
    path = sparse(tmp_path / "sparse.bin", 5 * GIB // 2)
    tokens = open_tokens(path, dtype)
    assert tokens.nbytes > 2 * GIB and path.stat().st_blocks * 512 < 2**20
    assert resident_bytes(path) == 0, "opening reads nothing"
    sampler = TokenSampler(tokens, batch_size, sequence_length, seed=1)
    assert resident_bytes(path) == 0, "nor does a sampler"
    starts = torch.randint(len(tokens) - sequence_length, (batch_size,), generator=twin(sampler)).tolist()
    next(sampler)
    size = tokens.itemsize
    spans = ((s * size // mmap.PAGESIZE, ((s + sequence_length + 1) * size - 1) // mmap.PAGESIZE) for s in starts)
    pages = {page for first, last in spans for page in range(first, last + 1)}
    assert resident_bytes(path) == len(pages) * mmap.PAGESIZE < tokens.nbytes / 1000
    assert path.stat().st_blocks * 512 < 2**20


def twin(sampler: TokenSampler) -> torch.Generator:
    return torch.Generator().set_state(sampler.state_dict()["generator"])


# ---------------------------------------------------------------- batches


@pytest.mark.parametrize("as_what", ["memmap", "array", "tensor", "strided", "int32"])
def test_y_is_x_shifted_by_one(tmp_path, as_what):
    ids = np.arange(1000, 2000)
    write_tokens(tmp_path / "t.bin", ids)
    tokens = {
        "memmap": open_tokens(tmp_path / "t.bin"),
        "array": ids,
        "tensor": torch.from_numpy(ids),
        "strided": np.repeat(ids, 2)[::2],
        "int32": torch.from_numpy(ids).int(),
    }[as_what]
    x, y = get_batch(tokens, 7, 12, generator=seeded())
    assert x.shape == y.shape == (7, 12) and x.dtype == y.dtype == torch.int64
    assert torch.equal(y, x + 1), "the tokens count up"
    assert torch.equal(x - x[:, :1], torch.arange(12).expand(7, 12))
    assert x.is_contiguous() and y.is_contiguous()
    assert x.device == y.device == torch.device("cpu")
    for batch in (x, y):
        batch.zero_()  # a copy: what it was drawn from stays
    assert np.array_equal(np.asarray(tokens), ids) and open_tokens(tmp_path / "t.bin")[0] == 1000


@pytest.mark.parametrize(("length", "sequence_length"), [(2, 1), (9, 8), (12, 8), (30, 1), (20, 19)])
def test_every_legal_start_is_drawn_and_no_other_equally_often(length, sequence_length):
    legal, draws = length - sequence_length, 20_000
    x, y = get_batch(np.arange(length), draws, sequence_length, generator=seeded(1))
    counts = collections.Counter(x[:, 0].tolist())
    assert set(counts) == set(range(legal)) and int(y.max()) == length - 1, "the last token is a target"
    expected = draws / legal
    assert sum((n - expected) ** 2 / expected for n in counts.values()) < legal + 6 * (2 * legal) ** 0.5, "chi squared"


def test_a_generator_decides_alone_and_without_one_torchs_own_does():
    tokens = np.arange(5000, dtype=np.uint16)
    before = torch.get_rng_state()
    first, second = (get_batch(tokens, 8, 16, generator=seeded(5))[0] for _ in range(2))
    assert torch.equal(first, second) and torch.equal(torch.get_rng_state(), before)
    drawn = []
    for _ in range(2):
        torch.manual_seed(3)
        drawn.append([get_batch(tokens, 8, 16)[0] for _ in range(2)])
    assert torch.equal(drawn[0][0], drawn[1][0]) and not torch.equal(drawn[0][0], drawn[0][1])


@pytest.mark.parametrize("device", ["cpu", torch.device("cpu"), "cuda"])
def test_batches_lie_on_the_asked_device(device):
    if str(device) == "cuda" and not torch.cuda.is_available():
        with pytest.raises(ValueError, match="CUDA"):
            get_batch(np.arange(50), 4, 8, device)
        return
    tokens = np.arange(50)
    x, y = get_batch(tokens, 4, 8, device, seeded())
    sampled, _ = next(TokenSampler(tokens, 4, 8, seed=0, device=device))
    assert x.device.type == y.device.type == sampled.device.type == torch.device(device).type
    here, _ = get_batch(tokens, 4, 8, generator=seeded())
    assert torch.equal(x.cpu(), here) and torch.equal(y, x + 1)


def test_memory_is_pinned_only_on_the_way_to_cuda(monkeypatch):
    calls = []
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda x: calls.append("pinned") or x)
    to = torch.Tensor.to
    monkeypatch.setattr(torch.Tensor, "to", lambda x, device, **how: calls.append((device.type, how)) or to(x, "cpu"))
    get_batch(np.arange(50), 4, 8)
    assert calls == []
    monkeypatch.setattr("course_lib.data.as_device", torch.device)
    get_batch(np.arange(50), 4, 8, "cuda")
    assert calls == ["pinned", ("cuda", {"non_blocking": True})] * 2


TOO_BAD = [
    ((np.arange(8), 4, 8), ValueError, ["tokens holds 8", "at least 9", "sequence_length is 8"]),
    ((np.arange(0), 4, 1), ValueError, ["tokens holds 0", "at least 2"]),
    ((np.arange(8), 0, 4), ValueError, ["batch_size is 0", "at least 1"]),
    ((np.arange(8), 4, 0), ValueError, ["sequence_length is 0", "at least 1"]),
    ((np.arange(8.0), 4, 4), TypeError, ["float64", "whole numbers"]),
    ((torch.ones(8), 4, 4), TypeError, ["float32", "whole numbers"]),
    ((np.ones((4, 4), int), 4, 2), ValueError, ["(4, 4)", "one row"]),
    (([1, 2, 3, 4], 1, 2), TypeError, ["tokens is a list", "ndarray | Tensor"]),
    ((np.arange(8), 4.0, 4), TypeError, ["batch_size", "float"]),
    ((np.arange(8), True, 4), ValueError, ["batch_size is True", "at least 1"]),
    ((np.arange(8), 10**30, 4), ValueError, ["batch_size is 1000", "at least 1"]),
    ((torch.ones(8, dtype=torch.int64, device="meta"), 4, 4), ValueError, ["on meta", "all its numbers"]),
]


@pytest.mark.parametrize(("args", "error", "told"), TOO_BAD)
def test_what_no_batch_can_be_drawn_from_gets_one_sentence(args, error, told):
    for what in (get_batch, lambda *args: TokenSampler(*args, seed=0)):
        with pytest.raises(error) as raised:
            what(*args)
        assert all(word in sentence(str(raised.value)) for word in told), raised.value
    with pytest.raises(ValueError, match="device is mps"):
        get_batch(np.arange(9), 2, 3, torch.device("mps"))


# ---------------------------------------------------------------- the sampler


def sampler(seed: int = 0, tokens: int = 5000, batch_size: int = 4, sequence_length: int = 16) -> TokenSampler:
    return TokenSampler(np.arange(tokens, dtype=np.uint16), batch_size, sequence_length, seed=seed)


@pytest.mark.parametrize("drawn", [0, 1, 17])
def test_a_sampler_goes_on_where_another_stood(tmp_path, drawn):
    one = sampler()
    for _ in range(drawn):
        next(one)
    torch.save(one.state_dict(), tmp_path / "state.pt")
    wanted = [next(one) for _ in range(5)]
    other = sampler(seed=99)
    next(other)
    state = torch.load(tmp_path / "state.pt", weights_only=True)
    other.load_state_dict(state)
    next(sampler())  # another sampler's draws do not matter, nor do torch's
    torch.rand(10)
    for (x, y), (x2, y2) in zip(wanted, (next(other) for _ in range(5)), strict=True):
        assert torch.equal(x, x2) and torch.equal(y, y2)
    assert other.state_dict()["batches"] == one.state_dict()["batches"] == drawn + 5
    other.load_state_dict(state)  # loading left the state itself alone
    assert torch.equal(next(other)[0], wanted[0][0])


def test_a_saved_position_stays_while_the_sampler_goes_on():
    one = sampler()
    state = one.state_dict()
    first = next(one)[0]
    next(one)
    assert state["batches"] == 0
    one.load_state_dict(state)
    assert torch.equal(next(one)[0], first)


def test_seeds_decide_and_an_iterator_never_ends():
    assert torch.equal(next(sampler(3))[0], next(sampler(3))[0])
    assert not torch.equal(next(sampler(3))[0], next(sampler(4))[0])
    one = sampler()
    assert iter(one) is one
    batches = [x for (x, _), _ in zip(one, range(50), strict=False)]
    assert len({tuple(x[0].tolist()) for x in batches}) > 40
    assert one.state_dict()["batches"] in (50, 51)


def test_a_state_holds_only_what_a_checkpoint_may():
    assert all(type(value) in (int, str, torch.Tensor) for value in sampler().state_dict().values())


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"batch_size": 8}, ["batch_size is 8", "4"]),
        ({"sequence_length": 8}, ["sequence_length is 8", "16"]),
        ({"num_tokens": 4000}, ["num_tokens is 4000", "5000"]),
        ({"generator": None}, ["generator", "None"]),
        ({"batches": "3"}, ["batches is a str ('3')", "int"]),
        ({"batch_size": torch.tensor([4, 4])}, ["batch_size is a tensor", "int"]),
        ({"generator": torch.zeros(3)}, ["generator", "shape (3,)"]),
        ({"generator": torch.zeros(5056, dtype=torch.uint8)}, ["generator"]),
    ],
)
def test_a_state_that_does_not_fit_is_refused_and_changes_nothing(change, told):
    one, twin = sampler(), sampler()
    next(one), next(twin)
    with pytest.raises(ValueError, match="load_state_dict") as raised:
        one.load_state_dict({**sampler(7).state_dict(), **change})
    assert all(word in sentence(str(raised.value)) for word in told), raised.value
    with pytest.raises(ValueError, match="no 'batch"):
        one.load_state_dict({"generator": torch.get_rng_state()})
    assert torch.equal(next(one)[0], next(twin)[0])


def test_another_default_device_changes_nothing():
    wanted = [next(one)[0] for one in [sampler()] for _ in range(2)]
    with torch.device("meta"):
        one = sampler()
        state = one.state_dict()
        next(one)
        one.load_state_dict(state)
        assert all(map(torch.equal, wanted, [next(one)[0] for _ in range(2)]))


def test_samplers_in_threads_do_not_disturb_each_other():
    alone = [next(one)[0] for one in [sampler(1)] for _ in range(30)]
    found = {}

    def draw(seed: int) -> None:
        one = sampler(seed)
        found[seed] = [next(one)[0] for _ in range(30)]

    threads = [threading.Thread(target=draw, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(map(torch.equal, found[1], alone))
