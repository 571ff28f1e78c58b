"""The solutions of notebook 12 against the course's own library, and what learners write."""
import random
import warnings

import numpy as np
import pytest
import torch
from written_answers import OWN, assert_diagnosed

from course_lib.checkpoint import checkpoint_path, latest_checkpoint, load_checkpoint, save_checkpoint
from course_lib.exercises import nb12
from course_lib.exercises.engine.judge import judge
from course_lib.exercises.nb12 import RunSaver, newest_good, snapshot, steps_between_saves


@pytest.mark.parametrize(("model_name", "optimizer_name"), [("normalised", "AdamW"), ("with dropout", "SGD")])
def test_the_library_brings_a_run_back_as_the_solution_does(tmp_path, model_name, optimizer_name):
    losses = []
    for save, load in (
        (RunSaver.reference().save, RunSaver.reference().load),
        (save_checkpoint, lambda *args: load_checkpoint(*args).step),
    ):
        model, optimizer = nb12._begun(model_name, optimizer_name, 0)
        nb12._train(model, optimizer, 3)
        save(tmp_path / "run.pt", model, optimizer, 3)
        want = nb12._train(model, optimizer, 3)
        model, optimizer = nb12._begun(model_name, optimizer_name, 1)
        assert load(tmp_path / "run.pt", model, optimizer) == 3
        losses += [want, nb12._train(model, optimizer, 3)]
    assert all(one == losses[0] for one in losses)


def test_the_newest_good_one_is_the_librarys(tmp_path):
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters())
    content = save_checkpoint(tmp_path / "x.pt", model, optimizer, 0).read_bytes()
    rng = random.Random(0)
    for number in range(12):
        folder = tmp_path / f"run {number}"
        folder.mkdir()
        steps = rng.sample(range(2000), 4)
        good = {step for step in steps if rng.random() < 0.5}
        for step in steps:
            checkpoint_path(folder, step).write_bytes(content if step in good else content[:-1])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = latest_checkpoint(folder)
        want = newest_good([f"step-{step}.pt" for step in steps], lambda name, good=good: int(name[5:-3]) in good)
        assert (found and f"step-{int(found.stem[5:])}.pt") == want


def test_no_other_number_of_steps_loses_less():
    rng = random.Random(0)
    for _ in range(50):
        save, step, per_day = rng.uniform(0.5, 100), rng.uniform(0.1, 30), 10 ** rng.uniform(-2, 1)
        every = np.arange(1, 100_000) * step
        lost = save / every + every / (2 * 86_400 / per_day)
        assert lost[steps_between_saves(save, step, per_day) - 1] == pytest.approx(lost.min(), rel=1e-3)


def test_a_snapshot_is_the_way_back():
    model, optimizer = nb12._begun("normalised", "AdamW", 0)
    nb12._train(model, optimizer, 3)
    kept, generators = snapshot(model, optimizer), (torch.get_rng_state(), random.getstate())
    want = nb12._train(model, optimizer, 4)
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    torch.set_rng_state(generators[0])
    random.setstate(generators[1])
    assert nb12._train(model, optimizer, 4) == want


BOTH = '{"model": model.state_dict(), "optimizer": optimizer.state_dict()}'
FILE = (
    '{"m": model.state_dict(), "o": optimizer.state_dict(), "s": step, '
    '"t": torch.get_rng_state(), "p": random.getstate()}'
)
SAVER = """class RunSaver:
    def save(self, path, model, optimizer, step):
        torch.save({}, path)

    def load(self, path, model, optimizer):
        c = torch.load(path)
        {}
        return c["s"]
"""
BACK = ('model.load_state_dict(c["m"])', 'optimizer.load_state_dict(c["o"])', 'torch.set_rng_state(c["t"])',
        'random.setstate(c["p"])')  # fmt: skip
CHECKPOINTS = 'steps = sorted(int(n[5:-3]) for n in names if re.fullmatch("step-[0-9]+[.]pt", n))\n    '
TAU = "tau = (2 * save_seconds * 86400 / failures_per_day) ** 0.5\n    "


def saver(*back: str, state: str = FILE) -> str:
    return SAVER.format(state, "\n        ".join(back))


WRITTEN = [  # exercise, what a learner writes, the diagnosis that it gets (None: it is right)
    ("snapshot", f"return copy.deepcopy({BOTH})", None),
    ("snapshot", f"return {BOTH}", "references"),
    ("snapshot", 'return {"model": dict(model.state_dict()), "optimizer": dict(optimizer.state_dict())}', "references"),
    ("snapshot", f"return copy.copy({BOTH})", "references"),
    ("snapshot", 'return {"model": {k: v.clone() for k, v in model.state_dict().items()}, '
     '"optimizer": optimizer.state_dict()}', "optimizer_by_reference"),
    ("snapshot", 'return {"model": {k: v.detach().cpu() for k, v in model.state_dict().items()}, '
     '"optimizer": copy.deepcopy(optimizer.state_dict())}', "model_by_reference"),
    ("snapshot", "return copy.deepcopy(model.state_dict())", OWN),
    ("RunSaver", saver(*BACK), None),
    ("RunSaver", saver(*BACK[:2]), "WithoutGenerators"),
    ("RunSaver", saver(*BACK[:3]), "WithoutPythonsGenerator"),
    ("RunSaver", saver(*BACK[:2], BACK[3]), "WithoutTorchsGenerator"),
    ("RunSaver", saver(BACK[0], *BACK[2:]), "WeightsAlone"),
    ("RunSaver", saver("pass"), "ReadsAndForgets"),
    ("RunSaver", saver(*BACK, "torch.manual_seed(0)", "random.seed(0)"), "SeedsAgain"),
    ("RunSaver", saver("import copy", "model = copy.deepcopy(model)", *BACK), OWN),
    ("newest_good", CHECKPOINTS + "for s in steps[::-1]:\n        if is_whole(f'step-{s}.pt'): "
     "return f'step-{s}.pt'", None),
    ("newest_good", CHECKPOINTS + "return f'step-{steps[-1]}.pt' if steps else None", "newest_as_it_is"),
    ("newest_good", CHECKPOINTS + "good = [s for s in steps[::-1] if is_whole(f'step-{s}.pt')]\n    "
     "return f'step-{good[0]}.pt' if good else None", "reads_all"),
    ("newest_good", "for n in sorted((n for n in names if re.fullmatch('step-[0-9]+[.]pt', n)), reverse=True):"
     "\n        if is_whole(n): return n", "sorted_as_text"),
    ("newest_good", CHECKPOINTS + "for s in steps:\n        if is_whole(f'step-{s}.pt'): return f'step-{s}.pt'",
     "oldest_first"),
    ("steps_between_saves", TAU + "return max(1, round(tau / step_seconds))", None),
    ("steps_between_saves", TAU + "return round(tau / step_seconds)", "none_at_all"),
    ("steps_between_saves", TAU + "return max(1, round(tau))", "in_seconds"),
    ("steps_between_saves", TAU + "return max(1, int(tau / step_seconds))", "cut_off"),
    ("steps_between_saves", TAU + "return max(1, round(tau / step_seconds / 2 ** 0.5))", "without_the_two"),
    ("steps_between_saves", TAU + "return tau / step_seconds", OWN),
    ("snapshot", f"optimizer.zero_grad()\n    return copy.deepcopy({BOTH})", OWN),
    ("snapshot", 'return {"model": {k: v.float().clone() for k, v in model.state_dict().items()}, '
     '"optimizer": copy.deepcopy(optimizer.state_dict())}', OWN),
    ("RunSaver", saver(*BACK).replace("torch.save", "torch.rand(1); torch.save"), OWN),
    ("RunSaver", saver(*BACK).replace("}, path)", "}, path); random.random()"), OWN),
    ("RunSaver", saver(*BACK).replace("torch.save(", "RunSaver.kept = copy.deepcopy(").replace("}, path)", "})")
     .replace("torch.load(path)", "RunSaver.kept"), OWN),
    ("newest_good", "c = [n for n in names if re.fullmatch('step-[0-9]+.pt', n)]\n    "
     "return next((n for n in sorted(c, key=lambda n: -int(re.sub(r'\\D', '', n))) if is_whole(n)), None)", OWN),
    ("newest_good", "c = [n for n in names if n.startswith('step-') and n[5:6].isdigit() and n.endswith('.pt')]\n    "
     "return next((n for n in sorted(c, key=lambda n: -int(re.findall('[0-9]+', n)[0])) if is_whole(n)), None)", OWN),
    ("newest_good", "names.sort(key=lambda n: (len(n), n))\n    return next((n for n in names[::-1] "
     "if re.fullmatch('step-[0-9]+[.]pt', n) and is_whole(n)), None)", OWN),
]  # fmt: skip


@pytest.mark.parametrize(("name", "body", "diagnosis"), WRITTEN)
def test_what_learners_write_is_recognised(name, body, diagnosis):
    one = getattr(nb12, name)
    assert_diagnosed(nb12, name, body if one.is_class else one.stub.removesuffix("...") + body, diagnosis)


@pytest.mark.parametrize(
    ("name", "source", "sentence"),
    [
        ("snapshot", "def snapshot(model, optimizer): return model.state_dict(), optimizer.state_dict()",
         "it gave tuple of dict, dict, and should give one dict"),
        ("snapshot", 'def snapshot(model, optimizer): return {"model": copy.deepcopy(model.state_dict())}',
         "entries: gave 1 element, ['model'], expected 2"),
        ("RunSaver", saver(*BACK).replace("path)", "str(path) + 'x')"), "gave 'finds no file'"),
        ("RunSaver", saver(*BACK).replace("torch.save(", "path.write_bytes(__import__('pickle').dumps(")
         .replace("}, path)", "}))").replace("torch.load(path)", "__import__('pickle').loads(path.read_bytes())"),
         "torch.save did not write it"),
    ],
)  # fmt: skip
def test_an_answer_of_another_kind_is_named(name, source, sentence):
    scope = dict(vars(nb12))
    exec(source, scope)
    assert sentence in judge(getattr(nb12, name), scope[name]).message
