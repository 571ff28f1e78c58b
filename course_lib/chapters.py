"""The fifteen notebooks of the course: what each asks, how long it takes, and which ones it builds on."""
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Chapter:
    """One notebook. Minutes are `None` while it is in preparation; `needs` names only what it builds on directly."""

    number: str
    slug: str
    title: str
    asks: str
    needs: tuple[str, ...] = ()
    study_minutes: int | None = None
    lecture_minutes: int | None = None

    @property
    def filename(self) -> str:
        return f"{self.number}_{self.slug}.ipynb"

    @property
    def ready(self) -> bool:
        return self.study_minutes is not None


CHAPTERS = (
    Chapter("00", "start_here", "Start here", "What can this machine do, and how do you work here?", (), 10, 10),
    Chapter("01", "tensors", "Tensors", "How many bytes, and which shape comes out?", ("00",), 55, 41),
    Chapter("02", "floats", "Floats", "Which numbers can it hold?", ("01",), 65, 47),
    Chapter("03", "strides_and_views", "Strides and views", "What is free, and what copies?", ("01",), 60, 47),
    Chapter("04", "einops_and_typed_shapes", "Einops and typed shapes", "Which axis is which?", ("03",), 60, 42),
    Chapter("05", "flops", "FLOPs", "How much arithmetic is it, and how fast does it run?", ("02", "04"), 65, 43),
    Chapter("06", "gradients", "Gradients", "What does a backward pass cost?", ("05",), 60, 45),
    Chapter("07", "initialization", "Initialization", "Does a signal survive twenty layers?", ("06",), 55, 40),
    Chapter("08", "custom_modules", "Custom modules", "What belongs to a model?", ("07",), 60, 44),
    Chapter("09", "data_loading", "Data loading", "How do you train on more data than memory holds?", ("03",), 60, 39),
    Chapter("10", "optimizers", "Optimizers", "What does an optimizer have to remember?", ("08",), 65, 47),
    Chapter(
        "11", "training_loop", "Training loop", "Why does one run learn and another blow up?", ("09", "10"), 70, 46
    ),
    Chapter("12", "checkpointing", "Checkpointing", "What do you save to go on bit for bit?", ("11",), 60, 42),
    Chapter("13", "mixed_precision", "Mixed precision", "Where are 16 bits enough?", ("11",), 65, 45),
    Chapter(
        "14", "transformer_accounting", "Accounting for a transformer", "How long, how large, how stable?",
        ("12", "13"), 75, 46,
    ),
)


class CourseMap:
    """A table of chapters that Jupyter shows as HTML and a terminal as text."""

    def __init__(self, chapters: tuple[Chapter, ...]) -> None:
        self.chapters = chapters

    def __repr__(self) -> str:
        header = ("", "notebook", "self-study", "lecture", "builds on")
        rows = [header, *(_row(chapter) for chapter in self.chapters)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(header))]
        lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
        return "\n".join(line.rstrip() for line in lines)

    def _repr_html_(self) -> str:
        cell = "style='text-align:left;padding:3px 14px'"
        names = ("", "notebook", "asks", "self-study", "lecture", "builds on")
        head = "".join(f"<th {cell}>{name}</th>" for name in names)
        rows = "".join(_html_row(chapter, cell) for chapter in self.chapters)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def course_map() -> CourseMap:
    """The course at a glance. Minutes are given twice: to work through alone, and to teach in a lecture hall."""
    return CourseMap(CHAPTERS)


def _row(chapter: Chapter) -> tuple[str, ...]:
    needs = ", ".join(chapter.needs)
    if not chapter.ready:
        return chapter.number, chapter.title, "in preparation", "", needs
    return chapter.number, chapter.title, f"{chapter.study_minutes} min", f"{chapter.lecture_minutes} min", needs


def _html_row(chapter: Chapter, cell: str) -> str:
    number, title, study, lecture, needs = (escape(text) for text in _row(chapter))
    if chapter.ready:
        title = f"<a href='{chapter.filename}'>{title}</a>"
    texts = (number, title, escape(chapter.asks), study, lecture, needs)
    return "<tr>" + "".join(f"<td {cell}>{text}</td>" for text in texts) + "</tr>"
