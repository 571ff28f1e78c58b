"""What `account` returns: the numbers, as a table in a notebook and in a terminal."""
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Saved:
    """Tensors that autograd keeps from the forward pass for the backward pass, and that are alike; `count` of them."""

    count: int
    shape: tuple[int, ...]
    dtype: str
    bytes: int

    def __repr__(self) -> str:
        return f"{self.count} × {self.dtype} {self.shape}: {self.bytes:,} B"


@dataclass(frozen=True, repr=False)
class Account:
    """One training step, accounted for. All sizes are in bytes; FLOPs are counts.

    - `parameters`: numbers in the model's parameters, frozen ones too, tied ones once
    - `forward_flops`, `backward_flops`, and both together in `total_flops`: of matrix products, convolutions and
      attention. Backward includes what activation checkpointing computes again. Optimizers' FLOPs are not included
    - `parameter_bytes`; `batch_bytes`; `gradient_bytes`, of parameters and of a batch that requires grad
    - `buffer_bytes`: buffers, and other tensors that the model keeps
    - `optimizer_bytes`: the state that the optimizer keeps from step to step
    - `activation_bytes`: what autograd holds after the forward pass, without parameters and buffers. A batch that it
      holds counts here, too
    - `peak_bytes`: the most that is in use at any moment of a step after the first: of all the above, which do not all
      live at once, and of what operators return on the way
    - `saved`: the tensors behind `activation_bytes`, largest first
    - `notes`: why some of these numbers are estimates for this model
    """

    model: str
    optimizer: str | None
    device: str
    parameters: int
    forward_flops: int
    backward_flops: int
    parameter_bytes: int
    buffer_bytes: int
    batch_bytes: int
    gradient_bytes: int
    optimizer_bytes: int
    activation_bytes: int
    peak_bytes: int
    saved: tuple[Saved, ...]
    notes: tuple[str, ...]

    @property
    def total_flops(self) -> int:
        """FLOPs of forward and backward."""
        return self.forward_flops + self.backward_flops

    def __repr__(self) -> str:
        rows = _rows(self)
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        lines = (f"{name:<{widths[0]}}  {exact:>{widths[1]}}  {rough:>{widths[2]}}" for name, exact, rough in rows)
        notes = (f"Note: {note}" for note in self.notes)
        return "\n".join([_title(self), *(line.rstrip() for line in lines), *notes])

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><td style='{_LEFT}'>{escape(name)}</td><td style='{_RIGHT}'>{exact}</td>"
            f"<td style='{_RIGHT}'>{rough}</td></tr>"
            for name, exact, rough in _rows(self)
        )
        notes = "".join(f"<div>Note: {escape(note)}</div>" for note in self.notes)
        return f"<div><b>{escape(_title(self))}</b></div><table>{cells}</table>{notes}"


_LEFT = "text-align:left;padding:2px 14px"
_RIGHT = "text-align:right;padding:2px 14px;font-variant-numeric:tabular-nums"
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def _title(account: Account) -> str:
    optimizer = f" with {account.optimizer}" if account.optimizer else ""
    return f"One training step of {account.model} ({account.parameters:,} parameters){optimizer}, on {account.device}"


def _rows(account: Account) -> list[tuple[str, str, str]]:
    """Name, exact number with its unit, and the same rounded."""
    flops = {
        "forward": account.forward_flops,
        "backward": account.backward_flops,
        "forward and backward": account.total_flops,
    }
    sizes = {
        "parameters": account.parameter_bytes,
        "buffers": account.buffer_bytes,
        "batch": account.batch_bytes,
        "gradients": account.gradient_bytes,
        "optimizer state": account.optimizer_bytes,
        "saved for backward": account.activation_bytes,
        "peak of the step": account.peak_bytes,
    }
    rows = [(name, f"{count:,} FLOPs", _rounded(count)) for name, count in flops.items()]
    return rows + [(name, f"{size:,} B", _binary(size)) for name, size in sizes.items()]


def _rounded(count: int) -> str:
    return f"{count:.2e}".replace("e+0", "e").replace("e+", "e") if count >= 10**6 else ""


def _binary(size: int) -> str:
    power = min(max(size.bit_length() - 1, 0) // 10, len(_BINARY) - 1)
    return f"{size / 1024**power:,.1f} {_BINARY[power]}" if power else ""
