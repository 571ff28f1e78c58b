"""`python -m course_lib.classroom lab | edit | present NUMBER | fresh NUMBER`, as the Makefile calls it. `fresh` aside,
further arguments are JupyterLab's."""
import sys
from pathlib import Path

from course_lib.classroom import desk, lab, present

ROOT = Path(__file__).resolve().parents[2]
USAGE = "Say what to do: python -m course_lib.classroom lab, edit, present NUMBER, or fresh NUMBER"


def main(arguments: list[str], root: Path = ROOT) -> int:
    """Carry out one command; returns the exit status."""
    notebooks, work = root / "notebooks", root / "work"
    try:
        match arguments:
            case ["lab", *flags]:
                for sentence in desk.lay_all(notebooks, work):
                    print(sentence, flush=True)
                return lab.serve(work, flags)
            case ["edit", *flags]:
                return lab.serve(notebooks, flags)
            case ["present", which, *flags] if not which.startswith("-"):
                return present.serve(present.begin(notebooks, root / "build" / "present", which), flags)
            case ["fresh", *numbers] if numbers:
                for number in numbers:
                    print(desk.begin_again(notebooks, work, number))
                return 0
            case [("fresh" | "present") as target, *_]:
                raise desk.Refusal(f"Say which: make {target} NB={desk.shipped_in(notebooks)[-1].name[:2]}")
            case _:
                raise desk.Refusal(USAGE)
    except desk.Refusal as refusal:
        print(refusal, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
