"""FLOPs of a matmul, the share of a promise that a program reaches, and the roofline that says what it could reach.

A FLOP is one addition or multiplication of floats; FLOPs are how many, FLOP/s how many in a second.
"""
import math
from dataclasses import dataclass

from course_lib.checked import checked, describe
from course_lib.hardware import UnknownPeak


@checked
def matmul_flops(b: int, d: int, k: int) -> int:
    """FLOPs of a (b, d) matrix times a (d, k) matrix: b·k outputs, for each of them d products and d additions.

    The first addition of each sum is counted as well, as everybody does: hardware adds the first product to 0.
    Raises ValueError for a negative size.
    """
    for name, size in (("b", b), ("d", d), ("k", k)):
        if size < 0:
            raise ValueError(f"matmul_flops(): {name} is {size}; at least 0 is asked for.")
    return 2 * b * d * k


@checked
def mfu(flops: float, seconds: float, promised_flop_per_sec: float | UnknownPeak) -> float:
    """Model FLOPs utilisation: the share, from 0 to 1, of the promised FLOP/s that a program reached.

    `flops` are those that the model needs, whatever else the program computed; the promise is the dense peak of the
    dtype that ran (`get_promised_flop_per_sec`), times the number of devices. From 0.5 on it is good. The term comes
    from the PaLM report (Chowdhery et al. 2022, appendix B).

    Raises ValueError for a share above 1: no program beats its peak, so it is the peak of something else. Raises
    TypeError with what is known if no peak is.
    """
    if isinstance(promised_flop_per_sec, UnknownPeak):
        raise TypeError(f"mfu(): {promised_flop_per_sec}")
    _require_positive("mfu", seconds=seconds, promised_flop_per_sec=promised_flop_per_sec)
    if not 0 <= flops < math.inf:
        raise ValueError(f"mfu(): flops is {flops}; a finite number, 0 or more, is asked for.")
    share = flops / seconds / promised_flop_per_sec
    if share > 1:
        raise ValueError(
            f"mfu(): wrong peak: {flops / seconds:.4g} FLOP/s would be {share:.1%} of {promised_flop_per_sec:.4g}; "
            "the dense peak of the dtype that ran, of all devices that took part, is asked for."
        )
    return share


@dataclass(frozen=True)
class Roofline:
    """A machine as two speeds: `peak` in FLOP/s, `bandwidth` in bytes/s (Williams, Waterman and Patterson 2009).

    Work of so many FLOPs that moves so many bytes to and from memory takes at least as long as the slower of the two.
    """

    peak: float
    bandwidth: float

    def __post_init__(self) -> None:
        for name in ("peak", "bandwidth"):
            if not isinstance(value := getattr(self, name), int | float):
                raise TypeError(f"Roofline(): {name} is {describe(value)}; a float is asked for.")
        _require_positive("Roofline", peak=self.peak, bandwidth=self.bandwidth)

    @property
    def balance(self) -> float:
        """FLOPs per byte from which on work is compute-bound."""
        return self.peak / self.bandwidth

    @checked
    def attainable(self, intensity: float) -> float:
        """The FLOP/s that work of so many FLOPs per byte can reach at most."""
        return min(self.peak, intensity * self.bandwidth)

    @checked
    def bound(self, intensity: float) -> str:
        """What work of so many FLOPs per byte waits for: "compute" or "memory"."""
        return "compute" if intensity >= self.balance else "memory"

    @checked
    def seconds(self, flops: float, moved_bytes: float) -> float:
        """The least time for so many FLOPs on so many bytes, if it computes while it moves."""
        return max(flops / self.peak, moved_bytes / self.bandwidth)


def _require_positive(caller: str, **values: float) -> None:
    for name, value in values.items():
        if not 0 < value < math.inf:
            raise ValueError(f"{caller}(): {name} is {value}; a finite number above 0 is asked for.")
