"""Where a file is to be written: the place that a path really names, if a file can be renamed to it."""
import os
from pathlib import Path

from course_lib.checked import checked


@checked
def whole_path(function: str, path: str | os.PathLike) -> Path:
    """`path` in full, through links, so that a link goes on pointing to what it points to.

    Raises OSError for a folder and for what is no plain file (a device, a pipe): a rename would put a file in its
    place. ValueError for what can be no path.
    """
    try:
        whole = Path(os.path.realpath(path))
    except OSError as error:  # a relative path, and the folder that it is relative to is gone
        raise OSError(error.errno, f"{function}(): path is {str(path)!r}: {error.strerror}.") from None
    except ValueError:
        raise ValueError(f"{function}(): path is {str(path)!r}; a path without the character 0 is asked for.") from None
    if os.path.isdir(whole):
        raise IsADirectoryError(f"{function}(): {whole} is a folder; the path of a file is asked for.")
    if os.path.exists(whole) and not os.path.isfile(whole):
        raise FileExistsError(f"{function}(): {whole} is no plain file; another path is asked for.")
    return whole
