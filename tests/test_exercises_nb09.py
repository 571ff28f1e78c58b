"""The solutions of notebook 09 against the course's own library and a real map, and what learners write."""
import mmap
import random
import sys

import numpy as np
import pytest
import torch
from written_answers import OWN, assert_diagnosed

from course_lib import data
from course_lib.exercises import nb09
from course_lib.exercises.engine.judge import judge
from course_lib.exercises.nb09 import (
    ResumableSampler,
    map_tokens,
    next_token_batch,
    pages_touched,
    save_tokens,
    token_file_bytes,
)
from course_lib.pages import loaded_pages


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_the_size_is_that_of_a_file_that_the_library_writes(tmp_path):
    for vocab_size, dtype in ((256, np.uint8), (257, np.uint16), (65_536, np.uint16), (65_537, np.uint32)):
        tokens = [0, 5, vocab_size - 1]
        data.write_tokens(tmp_path / "t.bin", tokens, dtype)
        assert (tmp_path / "t.bin").stat().st_size == token_file_bytes(len(tokens), vocab_size)


def test_files_are_those_of_the_library(tmp_path):
    ours, theirs = tmp_path / "ours.bin", tmp_path / "theirs.bin"
    for dtype in ("uint8", "uint16", "uint32", "int64"):
        tokens = np.random.default_rng(0).integers(0, min(np.iinfo(dtype).max, 2**40), 3000)
        save_tokens(str(ours), tokens, dtype)
        data.write_tokens(theirs, tokens, dtype)
        assert ours.read_bytes() == theirs.read_bytes()
        assert np.array_equal(map_tokens(str(theirs), dtype), data.open_tokens(ours, dtype))
    np.save(tmp_path / "a.npy", tokens)
    for refused in (
        lambda: [save_tokens(str(ours), np.array([2**40]), "uint32")],
        lambda: [save_tokens(str(ours), np.array([-1]), "uint32")],
        lambda: [data.write_tokens(ours, np.array([2**40]), "uint32")],
        lambda: [map_tokens(str(tmp_path / "a.npy"), "int64")],
        lambda: [data.open_tokens(tmp_path / "a.npy", "int64")],
    ):
        with pytest.raises(ValueError, match=r"fit|token ids|npy"):
            refused()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere a page may be there for others")
@pytest.mark.parametrize("dtype", [np.uint16, np.uint32])
def test_pages_are_those_that_a_batch_loads(tmp_path, dtype):
    with (tmp_path / "sparse.bin").open("wb") as file:
        file.truncate(2**30)
    tokens, batch, length = data.open_tokens(tmp_path / "sparse.bin", dtype), 64, 1500
    starts = torch.randint(len(tokens) - length, (batch,), generator=seeded(5)).tolist()
    data.get_batch(tokens, batch, length, generator=seeded(5))
    assert loaded_pages(tokens).sum() == pages_touched(starts, length + 1, tokens.itemsize, mmap.PAGESIZE)


def test_batches_are_those_of_the_library():
    rng = random.Random(0)
    for seed in range(30):
        tokens = np.random.default_rng(seed).integers(0, 65_536, rng.randint(12, 400)).astype(np.uint16)
        sizes = rng.randint(1, 9), rng.randint(1, 11)
        mine, ours = next_token_batch(tokens, *sizes, seeded(seed)), data.get_batch(tokens, *sizes, None, seeded(seed))
        assert all(torch.equal(a, b) and a.dtype == b.dtype for a, b in zip(mine, ours, strict=True))


def test_the_librarys_sampler_passes_as_an_answer():
    class Answer(data.TokenSampler):
        def __init__(self, tokens, batch_size, sequence_length, seed):
            super().__init__(tokens, batch_size, sequence_length, seed=seed)

    assert judge(ResumableSampler, Answer).status == "correct"


REFUSE = "if open(path, 'rb').read({}){} == b'\\x93NUMPY': raise ValueError\n    return np.memmap(path, dtype, 'r')"
SAVE = "if tokens.min() < np.iinfo(dtype).min or tokens.max() > np.iinfo(dtype).max:\n        raise ValueError\n    "
RANDINT = "s = torch.randint({}, (batch_size,), generator=generator)\n    "
GATHER = "w = torch.from_numpy(tokens[s.numpy()[:, None] + np.arange(sequence_length + 1)].astype(np.int64))\n    "
LEGAL = RANDINT.format("len(tokens) - sequence_length")
PAIR = "return w[:, :-1], w[:, 1:]"
WRITTEN = [  # what a learner may write, and how it is answered: None is "correct"
    ("token_file_bytes", "return num_tokens * (1 + (vocab_size > 2 ** 8) + 2 * (vocab_size > 2 ** 16))", None),
    ("token_file_bytes", "return num_tokens * np.dtype(np.min_scalar_type(vocab_size)).itemsize",
     "largest_id_is_the_size"),
    ("token_file_bytes", "return num_tokens * 2", "always_uint16"),
    ("token_file_bytes", "return np.zeros(1, np.int64).itemsize * num_tokens", "always_int64"),
    ("map_tokens", "if open(path, 'rb').read(6) == b'\\x93NUMPY':\n        raise ValueError\n    "
     "return np.memmap(path, dtype, 'r')", None),
    ("map_tokens", "if b'NUMPY' in open(path, 'rb').read(6):\n        raise ValueError\n    "
     "return np.memmap(path, dtype, 'r')", OWN),
    ("map_tokens", "return np.memmap(path, dtype=np.dtype(dtype), mode='r')", "no_look_at_the_header"),
    ("map_tokens", "assert not path.endswith('.npy')\n    return np.memmap(path, dtype, 'r')", OWN),
    ("map_tokens", "if path[-4:] == '.npy': raise ValueError\n    return np.memmap(path, dtype, 'r')",
     "trusts_the_name"),
    ("map_tokens", "if open(path, 'rb').read(6) == b'\\x93NUMPY': raise ValueError\n    return np.memmap(path, dtype)",
     "default_mode"),
    ("save_tokens", SAVE + "b = path + '.tmp'\n    tokens.astype(dtype).tofile(b)\n    os.rename(b, path)", None),
    ("save_tokens", SAVE + "with open(path + 'x', 'wb') as f:\n        f.write(tokens.astype(dtype).tobytes())\n"
     "        f.flush()\n        os.replace(path + 'x', path)", None),
    ("save_tokens", SAVE + "open(path, 'wb').write(tokens.astype(dtype).tobytes())", "writes_over"),
    ("save_tokens", "np.array(tokens, dtype).tofile(path + 'x')\n    os.replace(path + 'x', path)", "wraps_around"),
    ("save_tokens", SAVE + "os.unlink(path)\n    tokens.astype(dtype).tofile(path + 'x')\n    "
     "os.rename(path + 'x', path)", "deletes_first"),
    ("save_tokens", "if tokens.max() > np.iinfo(dtype).max:\n        raise ValueError\n    "
     "tokens.astype(dtype).tofile(path + 'x')\n    os.replace(path + 'x', path)", "from_above_alone"),
    ("pages_touched", "return len({b // page_size for s in starts "
     "for b in range(s * itemsize, (s + length) * itemsize)})", None),
    ("pages_touched", "return sum(((s + length) * itemsize - 1) // page_size - s * itemsize // page_size + 1 "
     "for s in starts)", "counts_shared_pages_twice"),
    ("pages_touched", "import math\n    return len(starts) * math.ceil(length * itemsize / page_size)",
     "as_if_aligned"),
    ("pages_touched", "return len({s * itemsize // page_size for s in starts})", "first_pages_alone"),
    ("next_token_batch", LEGAL + GATHER + PAIR, None),
    ("next_token_batch", LEGAL + "x = torch.stack([torch.tensor(tokens[i : i + sequence_length].astype('int64')) "
     "for i in s])\n    y = torch.stack([torch.tensor(tokens[i + 1 : i + 1 + sequence_length].astype('int64')) "
     "for i in s])\n    return x, y", None),
    ("next_token_batch", RANDINT.format("len(tokens) - sequence_length - 1") + GATHER + PAIR, "misses_the_last_start"),
    ("next_token_batch", RANDINT.format("len(tokens) - sequence_length + 1") + GATHER + PAIR, "one_start_too_many"),
    ("next_token_batch", LEGAL + GATHER + "return w[:, :-1], w[:, :-1]", "y_is_x"),
    ("next_token_batch", LEGAL + GATHER.replace("np.int64", "np.int32") + PAIR, OWN),
    ("next_token_batch", LEGAL + GATHER.replace(".astype(np.int64)", "") + PAIR, "keeps_the_files_dtype"),
    ("next_token_batch", LEGAL.replace("generator=generator", "") + GATHER + PAIR, "from_torchs_own_generator"),
    ("map_tokens", REFUSE.format("1", "").replace("93NUMPY", "93"), OWN),
    ("map_tokens", REFUSE.format("2", "").replace("93NUMPY", "93N"), OWN),
    ("map_tokens", REFUSE.format("", "[:6]"), OWN),
    ("map_tokens", REFUSE.format("6", "") + ".copy()", "reads_it_all"),
    ("map_tokens", "if b'\\x93NUMPY' in open(path, 'rb').read(60): raise ValueError\n    "
     "return np.memmap(path, dtype, 'r')", OWN),
    ("save_tokens", "if tokens.min() < np.iinfo(dtype).min or tokens.max() >= 256 ** np.dtype(dtype).itemsize: "
     "raise ValueError\n    tokens.astype(dtype).tofile(path + 'x')\n    os.replace(path + 'x', path)", OWN),
    ("save_tokens", SAVE + "tokens.astype(dtype).tofile(path + 'x')\n    os.replace(path + 'x', path)\n    "
     "tokens.sort()", OWN),
    ("next_token_batch", "s = torch.arange(batch_size) % (len(tokens) - sequence_length)\n    " + GATHER + PAIR, OWN),
    ("next_token_batch", "generator = torch.Generator().manual_seed(0)\n    " + LEGAL + GATHER + PAIR, OWN),
    ("next_token_batch", LEGAL + "s = s.sort().values\n    " + GATHER + PAIR, OWN),
    ("next_token_batch", LEGAL + "torch.manual_seed(0)\n    " + GATHER + PAIR, OWN),
    ("next_token_batch", LEGAL + "w = torch.from_numpy(tokens.astype(np.int64, copy=False)).unfold(0, "
     "sequence_length + 1, 1)\n    w = w[s[0] : s[0] + 1] if batch_size == 1 else w[s]\n    " + PAIR, OWN),
]


@pytest.mark.parametrize(("name", "body", "diagnosis"), WRITTEN)
def test_what_learners_write_is_recognised(name, body, diagnosis):
    one = getattr(nb09, name)
    assert_diagnosed(nb09, name, one.stub.removesuffix("...") + body, diagnosis)


SAMPLER = """class ResumableSampler:
    def __init__(self, tokens, batch_size, sequence_length, seed):
        self.what, self.seed, self.drawn = (tokens, batch_size, sequence_length), seed, 0
        self.generator = torch.Generator().manual_seed(seed)
    def __next__(self):
        self.drawn += 1
        {}
    def state_dict(self):
        {}
    def load_state_dict(self, state):
        {}
"""
NEXT = "return get_batch(*self.what, generator=self.generator)"
STATE, LOAD = "return {'g': self.generator.get_state()}", "self.generator.set_state(state['g'])"
AGAIN = "self.generator.manual_seed(state['seed']); [next(self) for _ in range(state['drawn'])]"
COUNT = "return {'seed': self.seed, 'drawn': self.drawn}"
GOES_ON = "self.seed, self.drawn = state['seed'], state['drawn']"
FROM_SEED = "return get_batch(*self.what, generator=torch.Generator().manual_seed({}))"
SAMPLERS = {  # what is the matter: (parts of a sampler, a part of the answer)
    "nothing": ([NEXT, STATE, LOAD], "correct on all"),
    "a seed for each batch": ([FROM_SEED.format("self.seed * 10**6 + self.drawn"), COUNT, GOES_ON], "correct on all"),
    "seed 1 begins where seed 0 goes on": ([FROM_SEED.format("self.seed + self.drawn"), COUNT, GOES_ON],
                                           "another seed draws others: gave False"),
    "counts twice": ([NEXT, COUNT, AGAIN], "a third one, from the state of the second: gave False"),
    "state_dict draws": ([NEXT, "s = self.generator.get_state(); next(self); return {'g': s}", LOAD],
                         "state_dict() draws no batch: gave False"),
    "no dict": ([NEXT, "return self.generator.get_state()", "self.generator.set_state(state)"],
                "the state is a dict of tensors, numbers and text: gave False"),
    "x alone": ([NEXT + "[0]", STATE, LOAD], "it gave Tensor, and should give the pair of tensors"),
    "seeds random": (["__import__('random').seed(0); " + NEXT, STATE, LOAD],
                     "shared generators that it moves: gave 1 element, ['random']"),
}  # fmt: skip


@pytest.mark.parametrize("matter", SAMPLERS)
def test_samplers_that_learners_write(matter):
    parts, said = SAMPLERS[matter]
    scope = dict(vars(nb09))
    exec(SAMPLER.format(*parts), scope)
    assert said in judge(ResumableSampler, scope["ResumableSampler"]).message


@pytest.mark.parametrize(
    ("result", "sentence"),
    [
        ("None", "it gave None, and should give two tensors, x and y"),
        ("x.numpy(), y.numpy()", "it gave tuple of NumPy array, NumPy array, and should give two tensors"),
        ("x.T, y.T", "shapes of x and y[0]: gave (8, 4), expected (4, 8)"),
        ("x, y[:, -1]", "shapes of x and y[1]: gave 1 element, (4,), expected 2, (4, 8)"),
    ],
)
def test_a_batch_of_another_kind_is_named(result, sentence):
    def answer(*args):
        x, y = next_token_batch.reference(*args)
        return eval(result, {"x": x, "y": y})

    assert sentence in judge(next_token_batch, answer).message


@pytest.mark.parametrize("seed", range(3))
def test_claims_about_random_starts_hold_for_other_seeds(seed, monkeypatch):
    """The probes' tolerances are no luck: a right answer passes whatever its generator draws."""
    shifted = [nb09.case(f"{case.text[:-1]}{seed + 40}", case.label) for case in next_token_batch.case_list]
    monkeypatch.setattr(next_token_batch, "case_list", shifted)
    monkeypatch.setattr(next_token_batch, "_seen", {})
    for right in next_token_batch.alternatives.values():
        assert judge(next_token_batch, right).status == "correct"
