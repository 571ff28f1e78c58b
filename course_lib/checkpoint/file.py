"""One file: written beside its target, flushed and renamed; read only after its checksums have been verified."""
import errno
import os
import pickle
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import torch

from course_lib.checked import describe
from course_lib.places import whole_path

try:
    import fcntl
except ImportError:
    fcntl = None

_FAMILY = "course_lib.checkpoint "
FORMAT = f"{_FAMILY}1"
_PARTS = {
    "step": int, "model": dict, "optimizer": dict, "optimizer_of": dict, "generators": dict, "extra": object,
    "schedule": object, "sampler": object,
}  # fmt: skip
_FOLDER = 0x10  # among a zip entry's attributes, which are MS-DOS's


class CheckpointDamaged(ValueError):
    """The file is no checkpoint, or not the one that was written."""


def write(path: Path, content: dict) -> None:
    """Write beside `path`, flush, rename, and flush the directory, which is where a rename is written down."""
    path = whole_path("save_checkpoint", path)
    partial = path.with_name(f".{path.name}.partial")  # a rename is atomic only within one file system
    try:
        _make_directory(path.parent)
        with _alone_at(partial):
            _write_and_rename(partial, path, content)
    except BaseException as error:
        if cause := _os_error(error):
            reason = f"{cause.strerror or cause}; what was saved before is untouched"
            raise OSError(cause.errno, f"save_checkpoint(): {path} could not be written: {reason}.") from None
        raise
    _flush_directory(path.parent)


def _write_and_rename(partial: Path, path: Path, content: dict) -> None:
    try:
        with open(partial, "wb") as file:
            torch.save(content, file)
            file.flush()
            os.fsync(file.fileno())
        _require_loadable(partial)
        os.replace(partial, path)
    except BaseException:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise


@contextmanager
def _alone_at(partial: Path) -> Iterator[None]:
    """Wait until no other process writes there, and keep others out. Windows has no such locks.

    Whoever held the lock before has renamed the file, so what is locked has to be what has the name now.
    """
    if fcntl is None:
        yield
        return
    while True:
        held = os.open(partial, os.O_RDWR | os.O_CREAT, 0o666)
        with suppress(OSError):  # nor have some file systems
            fcntl.flock(held, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(held), os.stat(partial)):
                break
        os.close(held)
    try:
        yield
    finally:
        os.close(held)


def _require_loadable(partial: Path) -> None:
    """Raise TypeError if what was written is not read again; its tensors are mapped, not read."""
    try:
        torch.load(partial, map_location="cpu", weights_only=True, mmap=True)
    except pickle.UnpicklingError as error:
        came = f"something that could be written but not loaded again: the file {_refusal(error)}"
        raise TypeError(f"save_checkpoint(): there is {came}; nothing was saved.") from None


def _os_error(error: BaseException | None) -> OSError | None:
    """The OSError that stopped torch.save, which reports it as a RuntimeError about positions."""
    while error is not None and not isinstance(error, OSError):
        error = error.__cause__ or error.__context__
    return error


def _make_directory(directory: Path) -> None:
    if not directory.is_dir():
        if os.path.lexists(directory):
            raise NotADirectoryError(errno.ENOTDIR, f"{directory} is there and is no directory")
        _make_directory(directory.parent)
        directory.mkdir(exist_ok=True)
        _flush_directory(directory.parent)


def _flush_directory(directory: Path) -> None:
    if os.name == "nt":  # Windows opens no directories
        return
    with suppress(OSError):  # some file systems flush none, and a directory may be written but not opened
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def read(path: Path, only_look: bool = False) -> dict:
    """The content of a checkpoint that is whole; tensors on the CPU, only mapped where a look is all that is asked."""
    with _opened(path) as file:
        complaint = _damage(file)
    if complaint:
        raise CheckpointDamaged(f"{path.name} {complaint}.")
    try:
        content = torch.load(path, map_location="cpu", weights_only=True, mmap=only_look)
    except Exception as error:
        raise CheckpointDamaged(f"{path.name} {_refusal(error)}.") from None
    form = content.get("format") if isinstance(content, dict) else None
    if not isinstance(form, str) or not form.startswith(_FAMILY):
        raise CheckpointDamaged(f"{path.name} is a file of torch.save, but not one that save_checkpoint wrote.")
    if form != FORMAT:
        raise CheckpointDamaged(f"{path.name} has the format {form!r}; {FORMAT!r} is what this version reads.")
    for key, kinds in _PARTS.items():
        if key not in content or not isinstance(content[key], kinds):
            came = describe(content[key]) if key in content else "missing"
            raise CheckpointDamaged(f"{path.name} is not whole: its part {key!r} is {came}.")
    return content


def _opened(path: Path) -> BinaryIO:
    """The file, open for reading. An OSError here says nothing about the content."""
    try:
        return open(path, "rb")
    except OSError as error:
        reason = f"{path} cannot be opened: {error.strerror}; a file that save_checkpoint wrote is asked for"
        raise OSError(error.errno, f"load_checkpoint(): {reason}.") from None
    except ValueError:
        raise ValueError(f"load_checkpoint(): path is {str(path)!r}, which can be no file's.") from None


def _damage(file: BinaryIO) -> str | None:
    """What is wrong with the zip. Its checksums cover all that it holds; torch itself verifies none of them."""
    start = file.read(4)
    if start != b"PK\3\4":
        return "is not a checkpoint: it does not begin like one" if start else "is empty, and no checkpoint is"
    try:
        with zipfile.ZipFile(file) as archive:
            if not any(entry.filename.endswith("/data.pkl") for entry in archive.infolist()):
                return "is a zip, but not one of torch.save"
            if odd := next((entry.filename for entry in archive.infolist() if not _is_plain(entry)), None):
                return f"is damaged: its table of contents describes {odd} in another way than torch.save does"
            if broken := archive.testzip():
                return f"is damaged: the checksum of {broken} is wrong"
    except Exception as error:  # whatever a reader trips over in a file that is not as it was
        if str(error) == "File is not a zip file":
            return "is cut short: the table of contents at its end is missing"
        return f"is damaged: {_first_line(error)}"
    return None


def _is_plain(entry: zipfile.ZipInfo) -> bool:
    """Stored as it is, and no folder: of a folder torch reads no bytes, and a bit that no checksum covers makes one."""
    is_stored = entry.compress_type == zipfile.ZIP_STORED and entry.file_size == entry.compress_size
    return is_stored and not entry.is_dir() and not entry.external_attr & _FOLDER


def _refusal(error: Exception) -> str:
    if found := re.search(r"GLOBAL (\S+)", str(error)):
        return f"was not loaded: it asks for {found[1]}, and loading objects can execute code"
    if found := re.search(r"(?:WeightsUnpickler error|Unsupported operand)[: ]*([^\n]+)", str(error)):
        return f"cannot be read: {found[1].rstrip('.')}"
    return f"cannot be read: {_first_line(error)}"


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
