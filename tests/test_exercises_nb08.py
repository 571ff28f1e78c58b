"""The solutions of notebook 08 against torch and against the course's own library, and what learners write."""
import copy

import pytest
import torch
from torch import nn
from written_answers import OWN, assert_diagnosed

from course_lib.exercises import nb08
from course_lib.exercises.engine.judge import judge
from course_lib.exercises.nb08 import MLP, Standardizer, Tied, draw_run, parameter_table
from course_lib.modules import Cruncher, get_num_parameters
from course_lib.randomness import make_generator


@pytest.mark.parametrize("sizes", [(5, 8, 3, 1), (64, 64, 1, 2), (3, 16, 2, 5)])
def test_the_network_has_the_parameters_of_the_formula_and_bends(sizes):
    input_dim, hidden_dim, output_dim, num_layers = sizes
    torch.manual_seed(0)
    model = MLP(*sizes)
    square = (num_layers - 1) * (hidden_dim + 1) * hidden_dim
    wanted = (input_dim + 1) * hidden_dim + square + (hidden_dim + 1) * output_dim
    assert get_num_parameters(model) == wanted
    x = torch.randn(200, input_dim, generator=torch.Generator().manual_seed(0))
    bent = (model(x) + model(-x)) / 2 - model(torch.zeros(1, input_dim))
    assert bent.abs().max() > 1e-6, "a linear function of x would be odd around 0"


def test_standardised_data_have_mean_0_and_std_1_and_a_checkpoint_keeps_it():
    data = torch.randn(50, 4) * torch.tensor([1.0, 10.0, 0.1, 5.0]) + 3
    model = Standardizer(4)
    model.fit(data)
    assert torch.allclose(model(data).mean(0), torch.zeros(4), atol=1e-5)
    assert torch.allclose(model(data).std(0), torch.ones(4), atol=1e-5)
    other = Standardizer(4)
    other.load_state_dict(copy.deepcopy(model.state_dict()))
    assert torch.equal(other(data), model(data)) and not list(model.parameters())


@pytest.mark.parametrize("model", [Cruncher(64, 2), Tied(50, 4), nb08.repeated(4), nn.TransformerDecoderLayer(16, 2)])
def test_the_tables_counts_add_up_to_the_librarys(model):
    rows = parameter_table(model)
    assert sum(count for _, _, count in rows) == get_num_parameters(model)
    assert {name for name, _, _ in rows} == {n for n, _ in model.named_parameters(remove_duplicate=False)}


def test_a_run_draws_from_the_librarys_generators():
    weights, batches = draw_run(5, 2, 3)
    data = make_generator(5, "data")
    assert all(torch.equal(batch, torch.randn(8, 8, generator=data)) for batch in batches)
    assert torch.equal(weights[0], torch.randn(8, 8, generator=make_generator(5, "weights")))


MLP_FORWARD = """
    def forward(self, x):
        for layer in self.layers[:-1]:
            x = {}
        return self.layers[-1](x)
"""
MLP_INIT = """
    def __init__(self, input_dim, hidden_dim, output_dim, num_layers):
        super().__init__()
        sizes = [input_dim, *[hidden_dim] * num_layers, output_dim]
        self.layers = {}
"""
LAYERS = "nn.Linear(sizes[i], sizes[i + 1]{}) for i in range(len(sizes) - 1)"
NETWORK = "class MLP(nn.Module):" + MLP_INIT + MLP_FORWARD
SCALER = """class Standardizer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        {}
    def fit(self, data):
        {}
    def forward(self, x):
        return (x - self.mean) / self.std
"""
FIT = "self.mean, self.std = data.detach().mean(0), data.detach().std(0)"
BUFFERS = "self.register_buffer('mean', torch.zeros(dim)); self.register_buffer('std', torch.ones(dim))"
NAMED = "model.named_parameters(remove_duplicate=False)"
EACH = f"for n, p in {NAMED}:\n        "
TABLE = "rows, seen = [], {}\n    " + EACH + "rows.append((n, tuple(p.shape), {}))\n        {}\n    return rows"
DRAW = "[torch.randn(8, 8, generator={}) for _ in range({})]"
RUN = "return " + DRAW.format("{}", "num_layers") + ", " + DRAW.format("{}", "steps")
G = "torch.Generator().manual_seed({})"
WRITTEN = [  # what a learner may write, and how it is answered: None is "correct"
    ("MLP", NETWORK.format(f"nn.ModuleList({LAYERS.format('')})", "layer(x).relu()"), None),
    ("MLP", NETWORK.format(f"nn.Sequential(*[{LAYERS.format('')}])", "nn.functional.relu(layer(x))"), None),
    ("MLP", NETWORK.format(f"[{LAYERS.format('')}]", "torch.relu(layer(x))"), OWN),
    ("MLP", NETWORK.format(f"nn.ModuleList({LAYERS.format(', bias=False')})", "torch.relu(layer(x))"), "NoBiases"),
    ("MLP", NETWORK.format(f"nn.ModuleList({LAYERS.format('')})", "layer(x)"), "NoActivation"),
    ("MLP", NETWORK.format(f"nn.ModuleList({LAYERS.format('')})", "torch.tanh(layer(x))"), OWN),
    ("MLP", NETWORK.replace("super().__init__()", "pass").format(f"nn.ModuleList({LAYERS.format('')})", "x"), OWN),
    ("Standardizer", SCALER.format(BUFFERS, FIT), None),
    ("Standardizer", SCALER.format(BUFFERS, "self.mean.data = data.data.mean(0); self.std.data = data.data.std(0)"),
     None),
    ("Standardizer", SCALER.format(BUFFERS, "self.mean = data.mean(0); self.std = data.std(0)"), "KeepsTheGraph"),
    ("Standardizer", SCALER.format("self.mean, self.std = torch.zeros(dim), torch.ones(dim)",
     FIT), "PlainAttributes"),
    ("Standardizer", SCALER.format(BUFFERS.replace(")); ", "), persistent=False); ")[:-1] + ", persistent=False)",
     FIT), "NotPersistent"),
    ("parameter_table", TABLE.format("set()", "0 if p in seen else p.numel()", "seen.add(p)"), None),
    ("parameter_table", TABLE.format("[]", "p.numel() * all(p is not q for q in seen)", "seen.append(p)"), None),
    ("parameter_table", TABLE.format("[]", "p.numel()", "pass"), "counted_again"),
    ("parameter_table", "return [(n, tuple(p.shape), p.numel()) for n, p in model.named_parameters()]", "first_names"),
    ("parameter_table", "return [(n, tuple(t.shape), t.numel()) for n, t in model.state_dict().items()]", OWN),
    ("draw_run", "a, b = " + f"{G.format('2 * seed')}, {G.format('2 * seed + 1')}\n    " + RUN.format("a", "b"), None),
    ("draw_run", "g = " + G.format("seed") + "\n    " + RUN.format("g", "g"), "one_for_both"),
    ("draw_run", "torch.manual_seed(seed)\n    " + RUN.format("None", "None"), "seeds_torchs_own"),
    ("draw_run", "a, b = " + f"{G.format('seed')}, {G.format('seed')}\n    " + RUN.format("a", "b"), "same_seed_twice"),
    ("draw_run", "a, b = " + f"{G.format('seed')}, {G.format('seed + 1')}\n    " + RUN.format("a", "b"),
     "seed_and_the_next"),
    ("draw_run", RUN.format("make_generator(seed, 'w')", "make_generator(seed, 'd')"), "made_in_the_loop"),
    ("draw_run", "return [], []", OWN),
    ("MLP", NETWORK.format(f"nn.ModuleList({LAYERS.format('')})", "nn.functional.relu6(layer(x))"), OWN),
    ("MLP", NETWORK.format(f"nn.ModuleList({LAYERS.format('')})", "nn.functional.leaky_relu(layer(x), 1e-3)"), OWN),
    ("Standardizer", SCALER.format(BUFFERS + "; self.register_buffer('rows', torch.tensor(0))", FIT), None),
    ("Standardizer", SCALER.format(BUFFERS, FIT).replace("return (", "with torch.no_grad(): return ("), OWN),
    ("Standardizer", SCALER.format(BUFFERS, FIT).replace("self.std\n", "self.std.cpu()\n"), OWN),
    ("Standardizer", SCALER.format(BUFFERS, FIT + "; data.data.sub_(self.mean)"), OWN),
    ("Standardizer", SCALER.format(BUFFERS, "d = data.detach(); self.mean += d.mean(0); self.std *= d.std(0)"), OWN),
    *(("draw_run", f"a, b = {G.format('seed')}, {G.format(f'seed + {more}')}\n    " + RUN.format("a", "b"),
       "seed_and_the_next") for more in (2, 10, 100, 1000)),
    ("draw_run", "a = np.random\n    a.seed(seed)\n    return [torch.tensor(a.randn(8, 8)) "
     "for i in range(num_layers)], [torch.tensor(a.randn(8, 8)) for _ in range(steps)]", OWN),
    ("draw_run", "a, b = " + f"{G.format('2 * seed')}, {G.format('2 * seed + 1')}\n    "
     + RUN.format("a", "b").replace("torch.randn(8, 8, generator=a)", "12**.5 * (torch.rand(8, 8, generator=a) - .5)"),
     OWN),
    ("draw_run", RUN.replace("generator={}", "generator=torch.Generator().manual_seed({})").format(
        "seed + _", "seed + 100 + _"), "a_seed_for_each_tensor"),
]


@pytest.mark.parametrize(("name", "body", "diagnosis"), WRITTEN)
def test_what_learners_write_is_recognised(name, body, diagnosis):
    one = getattr(nb08, name)
    assert_diagnosed(nb08, name, body if one.is_class else one.stub.removesuffix("...") + body, diagnosis)


@pytest.mark.parametrize(
    ("name", "source", "sentence"),
    [
        ("MLP", NETWORK.format(f"nn.ModuleList({LAYERS.format('')})", "torch.relu(layer(x))").replace("return", "y ="),
         "model(x): gave None, expected a Tensor"),
        ("Standardizer", SCALER.format(BUFFERS, "d = data.detach(); self.mean, self.std = d.mean(1), d.std(1)"),
         "mean: gave shape (10,), expected (3,)"),
        ("Standardizer", SCALER.format(BUFFERS.replace("torch.zeros(dim)", "torch.tensor(0.0)"), FIT),
         "mean before fit: gave shape (), expected (3,)"),
        ("draw_run", "def draw_run(seed, num_layers, steps): seed += 1",
         "it gave None, and should give two lists of tensors"),
        ("draw_run", "def draw_run(seed, num_layers, steps):\n    return [], [np.zeros((8, 8))] * steps",
         "it gave NumPy array, and should give two lists of tensors"),
        ("draw_run", "def draw_run(seed, num_layers, steps):\n    return [torch.zeros(3)] * num_layers, []",
         "weights[0]: gave 1 element, (3,), expected 2, (8, 8)"),
    ],
)  # fmt: skip
def test_an_answer_of_another_kind_is_named(name, source, sentence):
    scope = dict(vars(nb08))
    exec(source, scope)
    assert sentence in judge(getattr(nb08, name), scope[name]).message


@pytest.mark.parametrize("seed", range(10, 90, 10))
def test_claims_about_random_numbers_hold_for_other_seeds(seed, monkeypatch):
    """The probe's tolerances are no luck: a right answer passes whatever its generators draw."""
    monkeypatch.setattr(draw_run, "case_list", [nb08.case(f"{seed + i}, 3, 3") for i in range(10)])
    monkeypatch.setattr(draw_run, "_seen", {})
    for right in draw_run.alternatives.values():
        result = judge(draw_run, right)
        assert result.status == "correct", result
