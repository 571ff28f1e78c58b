"""Run a command where little is given: no network, the C locale, and a folder that cannot be written.

Linux namespaces take the network away and mount the folder read-only. Where they are not to be had, permissions protect
the folder. In both cases Python itself refuses to look up a host or to connect to anything but this machine.
"""
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

LOCALE = {"LANG": "C", "LC_ALL": "C"}
HOOK = """import sys

def refuse_the_network(event, arguments):
    if event == "socket.connect" and isinstance(arguments[1], tuple) and not arguments[1][0].startswith("127."):
        raise OSError(f"there is no network here: {arguments[1]}")
    if event == "socket.getaddrinfo" and arguments[0] not in (None, "", "localhost", "127.0.0.1", b"localhost"):
        raise OSError(f"there is no network here: {arguments[0]}")

sys.addaudithook(refuse_the_network)
"""


def in_bare_room(folder: Path, command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the command there; what it printed and its exit status."""
    with tempfile.TemporaryDirectory() as hooks:
        Path(hooks, "sitecustomize.py").write_text(HOOK, encoding="utf-8")
        paths = os.pathsep.join([hooks, environment.get("PYTHONPATH", "")])
        apart = namespaces()
        room = [*apart, sys.executable, __file__, "namespaces" if apart else "permissions", str(folder), *command]
        environment = {**environment, **LOCALE, "PYTHONPATH": paths}
        return subprocess.run(room, cwd=folder, env=environment, capture_output=True, encoding="utf-8", timeout=900)


def namespaces() -> list[str]:
    """The command that gives a process its own network and mounts, or nothing where that is not allowed."""
    command = [shutil.which("unshare") or "", "--map-root-user", "--net", "--mount"]
    if not command[0] or not shutil.which("mount"):
        return []
    return command if subprocess.run([*command, "true"], capture_output=True).returncode == 0 else []


def _close(means: str, folder: str) -> None:
    if means == "namespaces":
        _bring_up_loopback()  # a kernel and its client talk over it
        subprocess.run(["mount", "--bind", folder, folder], check=True)
        subprocess.run(["mount", "-o", "remount,ro,bind", folder], check=True)
    else:
        for path in (Path(folder), *Path(folder).rglob("*")):
            path.chmod(path.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))


def _bring_up_loopback() -> None:
    import fcntl
    import socket
    import struct

    set_flags, up = 0x8914, 0x1  # SIOCSIFFLAGS, IFF_UP
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        fcntl.ioctl(handle, set_flags, struct.pack("16sH22x", b"lo", up))


if __name__ == "__main__":
    _close(sys.argv[1], sys.argv[2])
    os.execvp(sys.argv[3], sys.argv[3:])
