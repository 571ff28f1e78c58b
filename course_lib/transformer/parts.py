"""A sum that still knows its parts: what the accounting of a transformer returns."""
from collections.abc import Mapping
from html import escape

from course_lib.checked import checked


@checked
def require_itemsize(function: str, itemsize: int) -> None:
    """Raise one sentence, in the name of `function`, unless so many bytes can hold a number."""
    if itemsize < 1:
        raise ValueError(f"{function}(): itemsize is {itemsize}; at least 1 byte is asked for.")


class Parts(dict[str, float]):
    """Part → how much, in `unit`; it displays as a table with shares, in a notebook and in a terminal.

    It is a dict in the order of the model's parts; `total` is their sum.
    """

    @checked
    def __init__(self, parts: Mapping[str, float], unit: str) -> None:
        super().__init__(parts)
        self.unit = unit

    @property
    def total(self) -> float:
        """The sum of all parts."""
        return sum(self.values())

    @checked
    def share(self, *names: str) -> float:
        """The share, from 0 to 1, that these parts have in the total. Raises ValueError for a part that is not there.

        Of a total of 0 every share is 0.
        """
        if unknown := [name for name in names if name not in self]:
            raise ValueError(f"share(): there is no part {unknown[0]!r}; there are {', '.join(self)}.")
        return sum(self[name] for name in names) / self.total if self.total else 0.0

    @checked
    def times(self, factor: float) -> "Parts":
        """All parts, multiplied by the same factor."""
        return Parts({name: factor * count for name, count in self.items()}, self.unit)

    def __repr__(self) -> str:
        rows = self._rows()
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        lines = (f"{name:<{widths[0]}}  {count:>{widths[1]}}  {share:>{widths[2]}}" for name, count, share in rows)
        return "\n".join(line.rstrip() for line in lines)

    def _repr_html_(self) -> str:
        left, right = "text-align:left;padding:2px 14px", "text-align:right;padding:2px 14px"
        rows = (
            f"<tr><td style='{left}'>{escape(name)}</td><td style='{right}'>{count}</td>"
            f"<td style='{right}'>{share}</td></tr>"
            for name, count, share in self._rows()
        )
        return f"<table>{''.join(rows)}</table>"

    def _rows(self) -> list[tuple[str, str, str]]:
        """Name, count and share of each part, then the total with its unit in the last column."""
        rows = [(name, f"{count:,.0f}", f"{self.share(name):.1%}") for name, count in self.items()]
        return [*rows, ("total", f"{self.total:,.0f}", self.unit)]
