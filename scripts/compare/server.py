"""A server process of one visit: started in a folder of its own, on loopback, and ended with it.

Every process is started in a session of its own, so that ending it ends what it started as well,
and only that.
"""

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

START_S_MAX = 90
STOP_S_MAX = 60

# Process groups that still run: ended when this program ends, however it ends.
_running = set()


class Unavailable(Exception):
    """A system that cannot be had, installed or started here, with the reason."""


def free_port():
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def descendants(pid):
    """All processes below `pid`, and itself, as (pid, name)."""
    found = [(pid, Path(f"/proc/{pid}/comm").read_text().strip())]
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    for child in children:
        try:
            found += descendants(int(child))
        except FileNotFoundError:
            pass  # It ended meanwhile.
    return found


class Server:
    """A started command.

    `name` is the process that does the work, if it is not the first one; `companions` are servers
    that it needs, ended after it.
    """

    def __init__(self, command, folder, environment=None, name=None, companions=()):
        self.companions = companions
        self.command = [str(word) for word in command]
        self.log = Path(folder) / "server.log"
        self.name = name
        # Settings of a run of ours are no keys of the servers.
        clean = {key: value for key, value in os.environ.items() if "PENSTOCK_" not in key}
        with open(self.log, "ab") as log:
            self.child = subprocess.Popen(
                self.command, cwd=folder, env={**clean, **(environment or {})},
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        _running.add(self.child.pid)

    def pid(self):
        """The process whose time and memory count."""
        if self.name is None:
            return self.child.pid
        below = descendants(self.child.pid)
        return next((pid for pid, name in below if name.startswith(self.name)), self.child.pid)

    def tail(self):
        """The end of what it printed."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])

    def wait_for(self, ready, what):
        """Waits until `ready()` is true."""
        deadline = time.monotonic() + START_S_MAX
        while time.monotonic() < deadline:
            if self.child.poll() is not None:
                raise Unavailable(f"{what} ended with {self.child.returncode}: {self.tail()}")
            if ready():
                return
            time.sleep(0.05)
        raise Unavailable(f"{what} was not ready within {START_S_MAX} s: {self.tail()}")

    def wait_port(self, port, what):
        """Waits until something listens there."""
        def listens():
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0
        self.wait_for(listens, what)

    def stop(self):
        """SIGTERM, and SIGKILL to what is left of its session after a minute."""
        for number, patience in ((signal.SIGTERM, STOP_S_MAX), (signal.SIGKILL, 10)):
            try:
                os.killpg(self.child.pid, number)
            except ProcessLookupError:
                break
            try:
                self.child.wait(patience)
                break
            except subprocess.TimeoutExpired:
                continue
        try:
            os.killpg(self.child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        _running.discard(self.child.pid)
        for companion in self.companions:
            companion.stop()


def abandon():
    """Ends everything that still runs, at once."""
    for group in list(_running):
        try:
            os.killpg(group, signal.SIGKILL)
        except ProcessLookupError:
            pass


def used(pid):
    """What a process has used so far: processor time, memory, bytes sent to the storage."""
    folder = Path(f"/proc/{pid}")
    ticks = (folder / "stat").read_text().rsplit(")", 1)[1].split()[11:13]
    fields = dict(line.split(":", 1) for name in ("status", "io")
                  for line in (folder / name).read_text().splitlines())
    return {"server_cpu_s": sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK"),
            "server_rss_bytes": int(fields["VmRSS"].split()[0]) * 1024,
            "server_written_bytes": int(fields["write_bytes"])}


def run(command, seconds, codes=(0,), **options):
    """A command that must end with one of `codes` within a time; its standard output."""
    command = [str(word) for word in command]
    try:
        done = subprocess.run(command, timeout=seconds, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    except FileNotFoundError as error:
        raise Unavailable(f"there is no {command[0]}") from error
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"{Path(command[0]).name} took longer than {seconds} s") from error
    if done.returncode not in codes:
        told = "\n".join((done.stdout + done.stderr).splitlines()[-8:])
        raise Unavailable(f"{Path(command[0]).name} failed ({done.returncode}): {told}")
    return done.stdout


def debian(command, package):
    """Path of a command, its Debian package installed first if need be.

    Its service is not started: a policy file says so while the package is unpacked, unless this
    machine has one already.
    """
    found = run(["sh", "-c", f"PATH=$PATH:/usr/sbin command -v {command} || true"], 10).strip()
    if found:
        return found
    policy = Path("/usr/sbin/policy-rc.d")
    mine = not policy.exists()
    try:
        if mine:
            policy.write_text("#!/bin/sh\nexit 101\n")
            policy.chmod(0o755)
        run(["apt-get", "update", "-q"], 300)
        run(["apt-get", "install", "-q", "-y", "--no-install-recommends", package], 600,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
    except PermissionError as error:
        raise Unavailable(f"please install {package}") from error
    finally:
        if mine:
            policy.unlink(missing_ok=True)
    return run(["sh", "-c", f"PATH=$PATH:/usr/sbin command -v {command}"], 10).strip()
