"""Bytes, storages and strides against torch and NumPy."""
import random

import numpy as np
import pytest
import torch

from course_lib.storage import contiguous_strides, get_memory_usage, same_storage, storage_bytes, storage_positions

X = torch.arange(12.0).reshape(3, 4)


# ---------------------------------------------------------------------------------------------- bytes of a tensor

@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool])
@pytest.mark.parametrize("shape", [(), (0, 3), (7,), (32, 32), (2, 3, 5)])
def test_memory_usage_is_that_of_numpy(shape, dtype):
    x = torch.zeros(shape, dtype=dtype)
    like = np.zeros(shape, {torch.bfloat16: np.int16}.get(dtype) or torch.zeros((), dtype=dtype).numpy().dtype)
    assert get_memory_usage(x) == like.nbytes == storage_bytes(x)


def test_a_view_counts_what_it_shows_and_keeps_the_whole_storage_alive():
    large = torch.zeros(1000, 1000)
    assert (get_memory_usage(large[3]), storage_bytes(large[3])) == (4_000, 4_000_000)
    assert (get_memory_usage(large[3].clone()), storage_bytes(large[3].clone())) == (4_000, 4_000)
    stretched = torch.zeros(3, 1).expand(3, 100)
    assert (get_memory_usage(stretched), storage_bytes(stretched)) == (1200, 12)


def test_a_tensor_on_meta_has_the_bytes_that_it_would_take():
    assert get_memory_usage(torch.empty(12288, 49152, device="meta")) == 2_415_919_104


# ---------------------------------------------------------------------------------------------- shared storages

VIEWS = {
    "x": lambda x: x,
    "row": lambda x: x[1],
    "column": lambda x: x[:, 1],
    "T": lambda x: x.T,
    "view": lambda x: x.view(4, 3),
    "expand": lambda x: x[:, :1].expand(3, 9),
    "detach": lambda x: x.detach(),
    "data": lambda x: x.data,
    "Parameter": torch.nn.Parameter,
    "other dtype": lambda x: x.view(torch.int32),
    "empty slice": lambda x: x[3:],
    "from NumPy": lambda x: torch.from_numpy(x.numpy()),
}
COPIES = {
    "clone": lambda x: x.clone(),
    "contiguous": lambda x: x.T.contiguous(),
    "reshape": lambda x: x.T.reshape(12),
    "list index": lambda x: x[[0, 1, 2]],
    "mask": lambda x: x[x > -1],
    "arithmetic": lambda x: x + 0,
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_views_share_their_storage(view):
    x = X.clone()
    assert same_storage(x, view(x)) is True
    assert same_storage(view(x), x) is True


@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES)
def test_copies_do_not(copy):
    x = X.clone()
    assert same_storage(x, copy(x)) is False
    assert same_storage(copy(x), x) is False


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_two_storages_without_data_are_not_the_same(device):
    shape = (0,) if device == "cpu" else (3,)
    x, y = torch.empty(shape, device=device), torch.empty(shape, device=device)
    assert same_storage(x, x[:])
    assert not same_storage(x, y)


def test_tensors_on_two_devices_share_nothing():
    assert not same_storage(X, X.to("meta"))
    assert not same_storage(X.to("meta"), X)


# ---------------------------------------------------------------------------------------------- strides and positions

def test_contiguous_strides_are_those_of_torch():
    draw = random.Random(0)
    shapes = [tuple(draw.choice([0, 1, 1, 2, 3, 7]) for _ in range(draw.randrange(7))) for _ in range(500)]
    assert all(any(set(shape) == sizes for shape in shapes) for sizes in (set(), {0}, {1}, {2, 3}, {0, 1, 7}))
    for shape in shapes:
        assert contiguous_strides(shape) == torch.empty(shape).stride(), shape
    assert contiguous_strides([3, np.int64(4)]) == contiguous_strides(torch.Size([3, 4])) == (4, 1)


def _random_view(draw: random.Random) -> torch.Tensor:
    shape = [draw.choice([0, 1, 2, 3, 5]) for _ in range(draw.randrange(5))]
    strides, offset = [draw.randrange(8) for _ in shape], draw.randrange(9)
    return torch.arange(200).as_strided(shape, strides, offset)


def test_positions_are_where_as_strided_reads():
    draw = random.Random(0)
    for _ in range(300):
        view = _random_view(draw)  # of a storage whose numbers are their own positions
        assert torch.equal(storage_positions(view), view), (view.shape, view.stride(), view.storage_offset())


def test_positions_count_elements_of_the_view_itself():
    assert storage_positions(X[1:, ::2].T).tolist() == [[4, 8], [6, 10]]
    assert storage_positions(X.view(torch.int16)[0, 2:6]).tolist() == [2, 3, 4, 5]
    assert storage_positions(torch.tensor(3.0)).item() == 0
    on_meta = storage_positions(torch.empty(4, 2, device="meta").T)
    assert on_meta.device.type == "cpu"
    assert on_meta.tolist() == [[0, 2, 4, 6], [1, 3, 5, 7]]


# ---------------------------------------------------------------------------------------------- sentences

TENSOR = "a tensor of dtype float32 and shape (3, 4)"
LIST, ARRAY = "a list ([1, 2])", "a NumPy array of dtype float32 and shape (3, 4)"
DENSE = "a dense one, with a single storage, is asked for."
NAMES = {"TENSOR": TENSOR, "LIST": LIST, "ARRAY": ARRAY, "DENSE": DENSE}
WRONG_KIND = {
    "get_memory_usage(): x is {LIST}; a Tensor is asked for.": lambda: get_memory_usage([1, 2]),
    "storage_bytes(): x is {ARRAY}; a Tensor is asked for.": lambda: storage_bytes(X.numpy()),
    "same_storage(): y is {ARRAY}; a Tensor is asked for.": lambda: same_storage(X, X.numpy()),
    "same_storage(): missing a required argument: 'y'; it is called as same_storage(x, y).": lambda: same_storage(X),
    'storage_positions(): x is {LIST}; Shaped[Tensor, "*shape"] is asked for.': lambda: storage_positions([1, 2]),
    "contiguous_strides(): shape is {TENSOR}; a Sequence is asked for.": lambda: contiguous_strides(X),
    "contiguous_strides(): shape is an int (3); a Sequence is asked for.": lambda: contiguous_strides(3),
    "contiguous_strides(): shape is a list ([0.5]); whole numbers are asked for.": lambda: contiguous_strides([0.5]),
    "contiguous_strides(): shape is a str ('ab'); whole numbers are asked for.": lambda: contiguous_strides("ab"),
}
WRONG_VALUE = {
    "contiguous_strides(): shape is (2, -1); sizes of at least 0 are asked for.": lambda: contiguous_strides((2, -1)),
    "get_memory_usage(): x is a sparse_coo tensor; {DENSE}": lambda: get_memory_usage(X.to_sparse()),
    "storage_bytes(): x is a sparse_coo tensor; {DENSE}": lambda: storage_bytes(X.to_sparse()),
    "storage_positions(): x is a sparse_coo tensor; {DENSE}": lambda: storage_positions(X.to_sparse()),
    "same_storage(): y is a sparse_coo tensor; {DENSE}": lambda: same_storage(X, X.to_sparse()),
    "same_storage(): x is a mkldnn tensor; {DENSE}": lambda: same_storage(X.to_mkldnn(), X),
    "get_memory_usage(): x is a nested tensor; {DENSE}": lambda: get_memory_usage(torch.nested.nested_tensor([X, X])),
}


@pytest.mark.parametrize(("sentence", "call"), WRONG_KIND.items(), ids=range(len(WRONG_KIND)))
def test_the_wrong_kind_of_argument_gets_one_sentence(sentence, call):
    with pytest.raises(TypeError) as caught:
        call()
    assert str(caught.value) == sentence.format(**NAMES)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize(("sentence", "call"), WRONG_VALUE.items(), ids=range(len(WRONG_VALUE)))
def test_a_wrong_value_gets_one_sentence(sentence, call):
    with pytest.raises(ValueError, match="asked for") as caught:
        call()
    assert str(caught.value) == sentence.format(**NAMES)
