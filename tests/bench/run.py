"""`make bench`: runs every bench_*.py beside this file and prints what each compares, as a ratio against its peer.

A bench has a function `ratios()` that yields pairs: what is compared with what, and how many times the peer's time it
takes. Both are measured in the same run, on the same machine. Names of benches on the command line run these alone.
"""
import runpy
import sys
from pathlib import Path


def main(names: list[str]) -> int:
    """Print every ratio as soon as it is known."""
    for path in sorted(Path(__file__).parent.glob("bench_*.py")):
        if not names or path.stem.removeprefix("bench_") in names:
            for compared, ratio in runpy.run_path(str(path))["ratios"]():
                print(f"{ratio:6.2f} ×  {compared}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
