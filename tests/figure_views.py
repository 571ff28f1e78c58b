"""What the tests of figures look at."""
import io

from matplotlib.axes import Axes
from matplotlib.figure import Figure


def png(figure: Figure) -> bytes:
    """The figure as it is drawn: two that differ in nothing are the same bytes."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=50)
    return file.getvalue()


def words(axes: Axes) -> list[str]:
    """All texts in the axes."""
    return [text.get_text() for text in axes.texts]
