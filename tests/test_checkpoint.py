"""Checkpoints: a run goes on bit for bit, damage is noticed before it does harm, nothing leaves half a file."""
import errno
import os
import pickle
import random
import re
import subprocess
import sys
import tempfile
import threading
import warnings
import zipfile
from collections import Counter, OrderedDict
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from kill_and_resume import flat
from sentences import sentence
from torch import nn
from torch.optim.lr_scheduler import LambdaLR, MultiStepLR

from course_lib import optim
from course_lib.checkpoint import (
    CheckpointDamaged,
    checkpoint_path,
    latest_checkpoint,
    load_checkpoint,
    save_checkpoint,
)
from course_lib.checkpoint.file import read
from course_lib.data import TokenSampler
from course_lib.randomness import seed_everything

posix = pytest.mark.skipif(os.name == "nt", reason="limits, links and modes of files are POSIX's")


class Run:
    """A model with weights, buffers and dropout, and all that its training needs; `step` uses every generator."""

    def __init__(self, make=torch.optim.AdamW, width=6, dtype=torch.float32, **settings):
        self.model = nn.Sequential(nn.Linear(4, width), nn.BatchNorm1d(width), nn.Dropout(0.3), nn.Linear(width, 1))
        self.model.to(dtype)
        self.optimizer = make(self.model.parameters(), **{"lr": 0.01, **settings})
        self.schedule = LambdaLR(self.optimizer, lambda step: 0.9**step)
        self.sampler = TokenSampler(np.arange(50, dtype=np.uint16), 8, 4, seed=3)
        self.parts = {"schedule": self.schedule, "sampler": self.sampler}

    def step(self, count=1):
        for _ in range(count):
            x = next(self.sampler)[0].float() / 50 + random.gauss(0, 1) + np.random.standard_normal()
            self.optimizer.zero_grad()
            self.model(x.to(next(self.model.parameters()).dtype)).pow(2).mean().backward()
            self.optimizer.step()
            self.schedule.step()
        return self

    def state(self):
        parts = (self.model, self.optimizer, self.schedule, self.sampler)
        generators = (torch.get_rng_state(), torch.from_numpy(np.random.get_state()[1].astype(np.int64)))
        return [*flat([part.state_dict() for part in parts]), *flat(generators), random.getstate(), np.random.rand()]


@pytest.fixture(autouse=True)
def seeded():
    seed_everything(0)


@pytest.fixture
def saved(tmp_path):
    """A checkpoint after three steps."""
    run = Run().step(3)
    return save_checkpoint(checkpoint_path(tmp_path, 3), run.model, run.optimizer, 3, **run.parts)


def refused(path, *args, error=CheckpointDamaged, **kwargs):
    with pytest.raises(error) as raised:
        load_checkpoint(path, *args, **kwargs)
    return sentence(str(raised.value))


# ---------------------------------------------------------------- bit for bit


@pytest.mark.parametrize(
    ("make", "settings"),
    [
        (torch.optim.AdamW, {"amsgrad": True}),
        (torch.optim.SGD, {"momentum": 0.9}),
        (torch.optim.SGD, {}),
        (torch.optim.Adafactor, {}),
        (torch.optim.NAdam, {}),
        (optim.AdamW, {}),
        (optim.AdaGrad, {}),
    ],
)
def test_a_run_goes_on_bit_for_bit(tmp_path, make, settings):
    run = Run(make, **settings).step(3)
    path = save_checkpoint(checkpoint_path(tmp_path, 3), run.model, run.optimizer, 3, **run.parts, extra={"loss": 0.25})
    want = run.step(4).state()
    seed_everything(7)
    other = Run(make, **settings).step(2)  # has gone elsewhere meanwhile
    loaded = load_checkpoint(path, other.model, other.optimizer, **other.parts)
    assert (loaded.path, loaded.step, loaded.extra) == (path, 3, {"loss": 0.25})
    assert other.step(4).state() == want


def test_generators_go_on_in_the_middle_of_a_pair(tmp_path):
    """Python and NumPy draw normals in pairs and keep the second one for later."""
    run = Run()
    draws = (random.gauss, np.random.normal, lambda *_: float(torch.randn(())))
    for draw in draws:
        draw(0, 1)
    path = save_checkpoint(tmp_path / "a.pt", run.model, run.optimizer, 0)
    want = [draw(0, 1) for draw in 3 * draws]
    seed_everything(5)
    load_checkpoint(path, run.model)
    assert [draw(0, 1) for draw in 3 * draws] == want


def test_generators_are_left_alone_where_that_is_asked_for(saved):
    model = Run().model
    seed_everything(5)
    want = float(torch.rand(())), np.random.rand(), random.random()
    seed_everything(5)
    load_checkpoint(saved, model, generators=False)
    assert (float(torch.rand(())), np.random.rand(), random.random()) == want


def test_what_an_optimizer_remembers_keeps_its_dtype(tmp_path):
    """torch's load_state_dict would round it to the parameters' 16 bits."""

    def make():
        p = nn.Parameter(torch.ones(3, dtype=torch.bfloat16))
        holder = nn.ParameterList([p])
        return holder, torch.optim.SGD(holder, lr=0.1, momentum=0.9)

    model, optimizer = make()
    remembered = torch.full((3,), 1 / 3)
    optimizer.state[model[0]]["momentum_buffer"] = remembered
    path = save_checkpoint(tmp_path / "a.pt", model, optimizer, 1)
    model, optimizer = make()
    load_checkpoint(path, model, optimizer)
    assert torch.equal(optimizer.state[model[0]]["momentum_buffer"], remembered)
    assert optimizer.state[model[0]]["momentum_buffer"].dtype == torch.float32


def test_a_file_from_a_gpu_loads_where_there_is_none(saved, tmp_path):
    elsewhere = tmp_path / "gpu.pt"
    with zipfile.ZipFile(saved) as archive, zipfile.ZipFile(elsewhere, "w") as copy:
        for name in archive.namelist():
            content = archive.read(name)
            if name.endswith("data.pkl"):  # torch's notes on where each storage was
                assert content.count(b"X\3\0\0\0cpu") == 1
                content = content.replace(b"X\3\0\0\0cpu", b"X\6\0\0\0cuda:0")
            copy.writestr(zipfile.ZipInfo(name), content)
    run = Run()
    load_checkpoint(elsewhere, run.model, run.optimizer, **run.parts)
    want = Run()
    load_checkpoint(saved, want.model, want.optimizer, **want.parts)
    assert run.state()[:-4] == want.state()[:-4]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize(("source", "target"), [("cuda", "cuda"), ("cuda", "cpu"), ("cpu", "cuda")])
def test_a_model_stays_on_its_device(tmp_path, source, target):
    def make(device):
        model = nn.Linear(4, 2).to(device)
        return model, torch.optim.AdamW(model.parameters())

    model, optimizer = make(source)
    model(torch.ones(1, 4, device=source)).sum().backward()
    optimizer.step()
    path = save_checkpoint(tmp_path / "a.pt", model, optimizer, 1, extra=[next(model.parameters())])
    draw = torch.rand(3, device=source)
    other, its = make(target)
    extra = load_checkpoint(path, other, its).extra
    assert {p.device.type for p in other.parameters()} == {target} and extra[0].device.type == "cpu"
    assert all(torch.equal(p.cpu(), q.cpu()) for p, q in zip(model.parameters(), other.parameters(), strict=True))
    assert {state["exp_avg"].device.type for state in its.state.values()} == {target}
    assert source != target or torch.equal(torch.rand(3, device=source), draw)


# ---------------------------------------------------------------- what a file holds


def test_torch_load_reads_it_without_pickled_objects(saved):
    content = torch.load(saved, weights_only=True)
    assert content["step"] == 3 and torch.equal(content["model"]["0.weight"], read(saved)["model"]["0.weight"])
    assert content["model"]._metadata, "the versions of the modules, which load_state_dict asks for"


class Tagged(torch.Tensor):
    pass


ENDLESS = []
ENDLESS.append({"itself": ENDLESS})


def test_what_could_not_be_loaded_again_is_not_saved(saved):
    before, run = saved.read_bytes(), Run()
    with pytest.raises(TypeError) as raised:  # torch writes empty bytes as a call of `bytes`
        save_checkpoint(saved, run.model, run.optimizer, 3, extra=b"")
    assert "asks for bytes" in sentence(str(raised.value)) and saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


def test_extra_comes_back_as_it_was(tmp_path):
    run = Run()
    extra = {
        "numbers": [1, 2.5, True, None, 1j, 1 - 2**2039],
        "nested": {"tuple": (1, (2, "ä")), 3: [torch.arange(3)], "dtype": torch.bfloat16},
        "from NumPy": (np.float64(0.1), np.int32(7), np.bool_(True)),
        "empty": [{}, [], ""],
        "ordered": OrderedDict(b=1, a=2),
        "counted": Counter("aab"),
        "a parameter": nn.Parameter(torch.ones(2)),
    }
    path = save_checkpoint(tmp_path / "a.pt", run.model, run.optimizer, 0, extra=extra)
    loaded = load_checkpoint(path, run.model).extra
    assert list(flat(loaded)) == list(flat({**extra, "a parameter": torch.ones(2)}))
    assert not loaded["a parameter"].requires_grad and type(loaded["from NumPy"][0]) is float
    assert type(loaded["ordered"]) is OrderedDict and loaded["counted"].total() == 3


@pytest.mark.parametrize(
    ("extra", "named"),
    [
        ({"a": [1, object()]}, "extra['a'][1] is an object"),
        ({"rng": np.arange(3)}, "extra['rng'] is a NumPy array"),
        ({"f": print}, "extra['f']"),
        ({Path("x"): 1}, "a key of extra"),
        ({"seen": frozenset("a")}, "extra['seen'] is a frozenset"),
        ([2**2040], "extra[0] is an int of 2,041 bits; 2,039 are the most"),
        ([2**2039 - 1, -(2**2039)], "extra[1] is an int of 2,040 bits"),
        (np.longdouble(1), "extra is a longdouble"),
        (torch.ones(2).as_subclass(Tagged), "extra is a Tagged"),
        (torch.ones(2).to_mkldnn(), "extra is an MKL-DNN tensor"),
        (nn.UninitializedParameter(), "extra has no shape yet"),
        (ENDLESS, "lies in more than 100 lists and dicts"),
    ],
)
def test_what_a_checkpoint_cannot_hold_is_refused_before_a_file_is_touched(tmp_path, extra, named):
    run = Run()
    with pytest.raises((TypeError, ValueError)) as raised:
        save_checkpoint(tmp_path / "new" / "a.pt", run.model, run.optimizer, 0, extra=extra)
    assert named in sentence(str(raised.value)) and not list(tmp_path.iterdir())


def test_a_model_without_numbers_is_refused(tmp_path, saved):
    with torch.device("meta"):
        model = nn.Linear(2, 2)
    with pytest.raises(ValueError, match=r"weight.* is on the meta device") as raised:
        save_checkpoint(tmp_path / "a.pt", model, torch.optim.SGD(model.parameters()), 0)
    assert sentence(str(raised.value))
    assert "0.weight is on the meta device" in refused(saved, Run().model.to("meta"), error=ValueError)


def test_a_small_view_is_saved_small_and_a_tied_weight_once(tmp_path):
    model = nn.ModuleList([nn.Linear(300, 300, bias=False), nn.Linear(300, 300, bias=False)])
    model[1].weight = model[0].weight
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    view = torch.zeros(1_000_000)[:3]
    path = save_checkpoint(tmp_path / "a.pt", model, optimizer, 0, extra=[view, view.view(3, 1)])
    assert 360_000 < path.stat().st_size < 390_000
    assert torch.equal(load_checkpoint(path, model).extra[1], torch.zeros(3, 1))


# ---------------------------------------------------------------- damage


def outcomes(good, changed, path):
    """What reading each of the changed files gives: "noticed" or "harmless"; anything else fails."""
    path.write_bytes(good)
    want = list(flat(read(path)))
    for content in changed:
        path.write_bytes(content)
        try:
            got = list(flat(read(path)))
        except CheckpointDamaged as damage:
            sentence(str(damage).replace("{", "").replace("}", ""))  # a damaged name may hold them
            yield "noticed"
            continue
        assert got == want, "other numbers were loaded without a word"
        yield "harmless"


def with_flip(content, bit):
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def smallest(tmp_path):
    model = nn.Linear(2, 1)
    return save_checkpoint(tmp_path / "small.pt", model, torch.optim.SGD(model.parameters(), lr=0.1), 0).read_bytes()


def test_no_single_flipped_bit_changes_a_number(tmp_path):
    """Numbers, names, headers, padding and table of contents: 1500 bits spread over all of it, and its worst places."""
    good = smallest(tmp_path)
    start, end = 8 * good.index(b"PK\1\2"), 8 * len(good)
    bits = [*range(0, start, start // 900), *range(start, end, (end - start) // 600)]
    folders = [8 * (entry.start() + 38) + 4 for entry in re.finditer(b"PK\1\2", good)]  # torch reads those as zeros
    found = list(outcomes(good, (with_flip(good, bit) for bit in bits + folders), tmp_path / "x.pt"))
    assert len(bits) >= 1500 and len(folders) >= 5 and found[-len(folders) :] == ["noticed"] * len(folders)
    assert found.count("noticed") > 1000


def test_no_truncation_is_taken_for_whole(tmp_path):
    good = smallest(tmp_path)
    lengths = [*range(64), *range(64, len(good), 61), *range(len(good) - 200, len(good))]
    assert {*outcomes(good, (good[:length] for length in lengths), tmp_path / "x.pt")} == {"noticed"}


def test_bytes_after_the_end_or_lost_in_the_middle(tmp_path):
    good = smallest(tmp_path)
    places = range(50, len(good), len(good) // 40)
    lost = [good[:at] + good[at + 1 :] for at in places]
    zeroed = [good[:at] + bytes(64) + good[at + 64 :] for at in places]
    assert {*outcomes(good, lost, tmp_path / "x.pt")} == {"noticed"}
    assert [*outcomes(good, zeroed, tmp_path / "x.pt")].count("noticed") > 20
    assert [*outcomes(good, [good + bytes(9)], tmp_path / "x.pt")]


class Harmful:
    """What pickle would call while it loads."""

    def __reduce__(self):
        return (exec, ("raise SystemError('executed')",))


def torch_saved(value):
    def write(path):
        torch.save(value, path)

    return write


def zipped(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("word/document.xml", "text")


def flipped(path):
    path.write_bytes(with_flip(path.read_bytes(), 4 * path.stat().st_size))


def changed(**parts):
    """Written by another version of the course: parts that differ, or (...) are not there."""

    def write(path):
        content = {**torch.load(path, weights_only=True), "of another version": [1], **parts}
        torch.save({key: part for key, part in content.items() if part is not ...}, path)

    return write


NO_CHECKPOINTS = {
    "empty": (lambda path: path.write_bytes(b""), "is empty"),
    "text": (lambda path: path.write_text("version https://git-lfs"), "does not begin like one"),
    "cut": (lambda path: path.write_bytes(path.read_bytes()[:9000]), "is cut short"),
    "flipped": (flipped, "is damaged: the checksum of"),
    "zip": (zipped, "is a zip, but not one of torch.save"),
    "weights": (torch_saved({"weight": torch.ones(2)}), "but not one that save_checkpoint wrote"),
    "tensor": (torch_saved(torch.ones(2)), "but not one that save_checkpoint wrote"),
    "harmful": (torch_saved({"format": Harmful()}), "asks for exec, and loading objects can execute code"),
    "pickle": (lambda path: path.write_bytes(pickle.dumps(Harmful())), "does not begin like one"),
    "newer": (changed(format="course_lib.checkpoint 2"), "has the format 'course_lib.checkpoint 2'; 'course_lib.check"),
    "no generators": (changed(generators=...), "is not whole: its part 'generators' is missing"),
    "odd step": (changed(step=2.5), "is not whole: its part 'step' is a float (2.5)"),
    "module": (torch_saved(nn.Linear(2, 2)), "asks for torch.nn.modules.linear.Linear"),
}


@pytest.mark.parametrize("kind", NO_CHECKPOINTS)
def test_damage_is_named_and_nothing_is_changed_or_executed(saved, kind):
    make, said = NO_CHECKPOINTS[kind]
    make(saved)
    run = Run().step()
    before = run.state()
    run.state()  # draws a number: put NumPy back where it was
    seed_after = np.random.get_state()
    complaint = refused(saved, run.model, run.optimizer, **run.parts)
    assert said in complaint and complaint.startswith(saved.name)
    assert np.random.get_state()[2] == seed_after[2] and run.state()[:-3] == before[:-3]
    with pytest.warns(RuntimeWarning, match=re.escape(said)):
        assert latest_checkpoint(saved.parent) is None


def test_what_another_version_added_does_no_harm_and_what_it_lacks_changes_nothing(saved):
    changed()(saved)
    run = Run().step()
    assert load_checkpoint(saved, run.model, run.optimizer, **run.parts).step == 3
    changed(generators={"torch": torch.get_rng_state()})(saved)
    run = Run().step()
    before, wanted = run.state(), torch.get_rng_state()
    assert "no states of generators" in refused(saved, run.model, run.optimizer, **run.parts, error=ValueError)
    assert run.state()[:-3] == before[:-3] and torch.equal(torch.get_rng_state(), wanted)


def tied(together):
    model = nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 5, bias=False))
    if together:
        model[1].weight = model[0].weight
    return model


def test_two_matrices_are_not_loaded_into_one(tmp_path):
    apart = tied(False)
    path = save_checkpoint(tmp_path / "a.pt", apart, torch.optim.SGD(apart.parameters()), 0)
    said = refused(path, tied(True), error=ValueError)
    assert said.endswith("it holds 0.weight and 1.weight as two tensors, which are one in the model.")
    one = tied(True)
    save_checkpoint(path, one, torch.optim.SGD(one.parameters()), 0)
    other = tied(True)
    load_checkpoint(path, other)
    assert torch.equal(other[0].weight, one[0].weight) and other[0].weight is other[1].weight


def other_order():
    run = Run()
    run.optimizer = torch.optim.AdamW([*run.model.parameters()][::-1])
    return run


def two_groups():
    run = Run()
    first, *rest = run.model.parameters()
    run.optimizer = torch.optim.AdamW([{"params": [first]}, {"params": rest}])
    return run


def another(model):
    run = Run()
    run.model = model
    return run


MISFITS = {
    "width": (lambda: Run(width=7), "it holds 0.weight as a tensor of dtype float32 and shape (6, 4), and"),
    "dtype": (lambda: Run(dtype=torch.float64), "and the model's is a tensor of dtype float64"),
    "missing": (lambda: another(nn.Sequential(*Run().model, nn.Linear(1, 1))), "it lacks 4.weight"),
    "extra": (lambda: another(Run().model[:2]), "it holds 3.weight, which the model has not"),
    "optimizer": (lambda: Run(torch.optim.SGD), "it was saved with AdamW, and SGD is given"),
    "order": (other_order, "where it had 0.weight (6, 4), it now has 3.bias (1,)"),
    "groups": (two_groups, "its groups had [6] parameters, and now they have [1, 5]"),
}


@pytest.mark.parametrize("kind", MISFITS)
def test_another_models_checkpoint_is_named_and_nothing_is_changed(saved, kind):
    make, said = MISFITS[kind]
    run = make()
    before = run.state()
    assert said in refused(saved, run.model, run.optimizer, **run.parts, error=ValueError)
    assert run.state()[:-3] == before[:-3]


def test_a_part_that_refuses_leaves_the_others_as_they_were(saved, tmp_path):
    run = Run().step()
    before = run.state()

    class Refuses:
        def state_dict(self):
            return {}

        def load_state_dict(self, state):
            raise KeyError("not mine")

    with pytest.raises(KeyError, match="not mine"):
        load_checkpoint(saved, run.model, run.optimizer, sampler=run.sampler, schedule=Refuses())
    other = MultiStepLR(torch.optim.AdamW(run.model.parameters()), [2, 5])
    bare = save_checkpoint(tmp_path / "bare.pt", run.model, run.optimizer, 1, schedule=other)
    assert "saved without a sampler" in refused(bare, run.model, sampler=run.sampler, error=ValueError)
    assert "sampler is an int (3)" in refused(bare, run.model, sampler=3, error=TypeError)
    assert run.state()[:-3] == before[:-3]


# ---------------------------------------------------------------- written whole or not at all


def test_flushed_then_renamed_then_the_directory_flushed(tmp_path, monkeypatch):
    run, seen = Run(), []
    fsync, replace = os.fsync, os.replace

    def watch_fsync(descriptor):
        status = os.fstat(descriptor)
        names = [path.name for path in tmp_path.iterdir() if os.path.samestat(path.stat(), status)]
        seen.append(("flush", names[0] if names else "directory", status.st_size))
        fsync(descriptor)

    def watch_replace(source, target):
        seen.append(("rename", source.name, target.name, os.stat(source).st_size))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", watch_fsync)
    monkeypatch.setattr(os, "replace", watch_replace)
    path = save_checkpoint(tmp_path / "a.pt", run.model, run.optimizer, 0)
    size = path.stat().st_size
    assert seen[:2] == [("flush", ".a.pt.partial", size), ("rename", ".a.pt.partial", "a.pt", size)]
    assert [one[:2] for one in seen[2:]] == ([] if os.name == "nt" else [("flush", "directory")])


@contextmanager
def full_disk():
    """Files cannot grow beyond 4000 bytes: what a full disk does to a write, an error in the middle."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@posix
def test_a_full_disk_loses_nothing(saved):
    before, run = saved.read_bytes(), Run()
    with full_disk(), pytest.raises(OSError, match="could not be written") as raised:
        save_checkpoint(saved, run.model, run.optimizer, 3)
    assert raised.value.errno == errno.EFBIG and "what was saved before is untouched" in str(raised.value)
    assert saved.read_bytes() == before and os.listdir(saved.parent) == [saved.name]
    save_checkpoint(saved, run.model, run.optimizer, 3, keep=1)
    assert read(saved)["step"] == 3


@contextmanager
def without_privileges():
    """root may write everywhere, so another user tries."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@posix
def test_two_that_write_to_one_path_do_not_spoil_it(tmp_path):
    big, failed = torch.rand(200_000), []

    def write(number):
        run = Run()
        try:
            for _ in range(15):
                save_checkpoint(tmp_path / "a.pt", run.model, run.optimizer, number, extra=big[: 1000 * number])
                assert load_checkpoint(tmp_path / "a.pt", run.model, generators=False).step in (1, 200)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in (1, 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and os.listdir(tmp_path) == ["a.pt"]


@posix
def test_a_read_only_directory_loses_nothing(saved):
    before, run = saved.read_bytes(), Run()
    with tempfile.TemporaryDirectory() as folder:  # others can reach it, unlike tmp_path
        old = Path(folder, saved.name)
        old.write_bytes(before)
        os.chmod(folder, 0o555)
        with without_privileges(), pytest.raises(PermissionError, match="could not be written: Permission denied"):
            save_checkpoint(checkpoint_path(folder, 4), run.model, run.optimizer, 4, keep=1)
        os.chmod(folder, 0o755)
        assert old.read_bytes() == before and os.listdir(folder) == [old.name]


def test_interrupted_while_it_writes(saved, monkeypatch):
    before, run = saved.read_bytes(), Run()
    monkeypatch.setattr(os, "fsync", lambda descriptor: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        save_checkpoint(saved, run.model, run.optimizer, 3)
    assert saved.read_bytes() == before and os.listdir(saved.parent) == [saved.name]


@posix
def test_a_link_goes_on_pointing_to_what_it_points_to(saved, tmp_path):
    link, run = tmp_path / "last.pt", Run()
    link.symlink_to(saved)
    assert save_checkpoint(link, run.model, run.optimizer, 9) == link and link.is_symlink()
    assert load_checkpoint(saved, run.model).step == 9


@posix
def test_what_is_no_plain_file_stays_what_it_is(tmp_path):
    run = Run()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match=r"is no plain file; another path is asked for\.$"):
        save_checkpoint(tmp_path / "pipe", run.model, run.optimizer, 0)
    assert (tmp_path / "pipe").is_fifo() and os.listdir(tmp_path) == ["pipe"]


@posix
def test_file_systems_that_flush_no_directory_will_do(saved, monkeypatch):
    run, flush = Run(), os.fsync

    def only_files(descriptor):
        if os.path.samestat(os.fstat(descriptor), saved.parent.stat()):
            raise OSError(errno.EINVAL, "Invalid argument")
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", only_files)
    save_checkpoint(saved, run.model, run.optimizer, 5)
    assert read(saved)["step"] == 5


def test_another_generator_in_numpys_place_is_told_of(saved):
    run, before = Run(), np.random.get_bit_generator()
    np.random.set_bit_generator(np.random.PCG64(0))
    try:
        with pytest.raises(ValueError, match=r"has been replaced by PCG64; the MT19937 that NumPy begins with"):
            save_checkpoint(saved, run.model, run.optimizer, 3)
    finally:
        np.random.set_bit_generator(before)
    assert read(saved)["step"] == 3


def test_another_default_device_changes_nothing(saved):
    run = Run().step(3)
    with torch.device("meta"):
        save_checkpoint(saved, run.model, run.optimizer, 3, **run.parts)
        assert load_checkpoint(saved, run.model, run.optimizer, **run.parts).step == 3


def test_places_where_no_file_can_be(tmp_path):
    run = Run()
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="file is there and is no directory"):
        save_checkpoint(tmp_path / "file" / "a.pt", run.model, run.optimizer, 0)
    for wrong in ("a\0b", tmp_path):
        with pytest.raises((ValueError, OSError), match=r"^(\[Errno 21\] )?load_checkpoint\(\): "):
            load_checkpoint(wrong, run.model)
    (tmp_path / "directory").mkdir()
    with pytest.raises(IsADirectoryError) as raised:
        save_checkpoint(tmp_path / "directory", run.model, run.optimizer, 0)
    assert sentence(str(raised.value))
    with pytest.raises(FileNotFoundError):
        load_checkpoint(tmp_path / "none.pt", run.model)


# ---------------------------------------------------------------- the last k, and the newest good one


def names(directory):
    return sorted(os.listdir(directory))


def test_the_last_k_are_kept_and_nothing_else_is_touched(tmp_path):
    run, directory = Run(), tmp_path / "not" / "there yet"
    for step in range(8, 12):
        save_checkpoint(checkpoint_path(directory, step), run.model, run.optimizer, step, keep=2)
    assert names(directory) == ["step-000000010.pt", "step-000000011.pt"]
    strangers = [".step-000000099.pt.partial", "best.pt", "step-000000050.pt", "step-7.pt"]
    for name in [".step-000000010.pt.partial", *strangers]:
        (directory / name).write_bytes(b"")
    save_checkpoint(checkpoint_path(directory, 12), run.model, run.optimizer, 12, keep=1)
    assert names(directory) == sorted([*strangers, "step-000000012.pt"])


def test_the_newest_good_one_is_found_and_damage_is_warned_of(tmp_path):
    assert latest_checkpoint(tmp_path) is None and latest_checkpoint(str(tmp_path / "none")) is None
    run = Run()
    steps = (999_999_999, 1_000_000_000, 1_000_000_001)  # as text, the first would be the last
    paths = [save_checkpoint(checkpoint_path(tmp_path, s), run.model, run.optimizer, s, keep=3) for s in steps]
    (tmp_path / ".step-9999999999.pt.partial").write_bytes(b"half")
    (tmp_path / "step-9999999998.pt").mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert latest_checkpoint(tmp_path) == paths[2]
    flipped(paths[2])
    with pytest.warns(RuntimeWarning, match=r"^step-1000000001\.pt is damaged: .*\. The one before") as said:
        assert latest_checkpoint(tmp_path) == paths[1]
    assert [one.filename for one in said] == [__file__], "the warning points at whoever asked"
    flipped(paths[1])
    with pytest.warns(RuntimeWarning):
        assert latest_checkpoint(tmp_path) == paths[0]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda run, path: save_checkpoint(path, run.model, run.optimizer, -1), "step is -1; at least 0"),
        (lambda run, path: save_checkpoint(path, run.model, run.optimizer, 1, keep=0), "keep is 0; at least 1"),
        (lambda run, path: save_checkpoint(path, run.model, run.optimizer, 1, keep=1), "checkpoint_path(directory, 1)"),
        (lambda run, path: checkpoint_path(path, -1), "step is -1; at least 0"),
        (lambda run, path: save_checkpoint(path, run.model, run.model, 1), "optimizer is a Sequential"),
        (lambda run, path: save_checkpoint(path, run.model, run.optimizer, 1, schedule=len), "schedule is"),
    ],
)
def test_wrong_arguments_are_named(tmp_path, call, said):
    with pytest.raises((TypeError, ValueError)) as raised:
        call(Run(), tmp_path / "a.pt")
    assert said in sentence(str(raised.value)) and not list(tmp_path.iterdir())


def test_killed_at_random_moments_a_run_ends_where_it_would_have():
    script = Path(__file__).with_name("kill_and_resume.py")
    asked = [sys.executable, str(script), "--kills", "6"]
    ended = subprocess.run(asked, capture_output=True, text=True, timeout=1800)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert re.search(r"^ +6  kills$", ended.stdout, re.MULTILINE)
