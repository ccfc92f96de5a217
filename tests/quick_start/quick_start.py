"""Runs the program without loading its libraries each time; quick_start.cpp says how. Standard library only.

What a process takes from the one that starts it (limits, cores, a terminal, a session) and what libraries read while they are
loaded is that of the first start, and all are laid out alike in memory: a test of these starts the program itself, and so does
one that sends it signals.
"""

import atexit
import functools
import os
import pathlib
import select
import signal
import socket
import struct
import subprocess
import tempfile
import threading

READ_AT_LOADING = ("ATEN_", "GLIBC_", "GOMP_", "KMP_", "LD_", "MALLOC_", "MKL_", "OMP_", "TORCH_")


def run_program(command, *, cwd, env=None, stdin="", timeout=300, anew=False, **options):
    """As subprocess.run() with text that is captured; `stdin` is text. Not quickly where that is asked for (`anew`), where the
    options are of the process itself, such as a limit, and where the program is not of a build tree."""
    words = [str(word) for word in command]
    environment = dict(os.environ if env is None else env)
    library = library_of(words[0])
    if anew or options or library is None or not loads_alike(environment):
        return subprocess.run(words, input=stdin, capture_output=True, text=True, cwd=cwd, env=environment, timeout=timeout,
                              **options)
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin.encode())
        given.seek(0)
        status = Starter.of(words[0], library).run(request(words, cwd, environment), (given, out, err), timeout)
        if status is None:
            raise subprocess.TimeoutExpired(words, timeout)
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(words, os.waitstatus_to_exitcode(status), out.read().decode(), err.read().decode())


def library_of(program):
    library = pathlib.Path(program).parent.parent / "tests/libsluice_quick_start.so"
    return library if library.exists() else None


def loads_alike(environment):
    changed = dict(set(environment.items()) ^ set(os.environ.items()))
    return not any(name.startswith(READ_AT_LOADING) for name in changed)


def request(words, cwd, environment):
    texts = [str(cwd), str(len(words)), *words, *(f"{name}={value}" for name, value in environment.items())]
    return b"".join(os.fsencode(text) + b"\0" for text in texts)


class Starter:
    """A process of the program that waits, and the socket to it."""

    @classmethod
    @functools.cache
    def of(cls, program, library):
        return cls(program, library)

    def __init__(self, program, library):
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 21)
        self.lock = threading.Lock()
        environment = {**os.environ, "LD_PRELOAD": str(library), "SLUICE_TEST_STARTS": str(theirs.fileno())}
        self.process = subprocess.Popen([program], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environment,
                                        pass_fds=[theirs.fileno()])
        theirs.close()
        atexit.register(self.end)

    def end(self):
        self.socket.close()
        self.process.wait()

    def run(self, message, files, timeout):
        """How the copy ended, as waitpid() says it; None if that took longer, and it was killed."""
        answers, theirs = os.pipe()
        try:
            try:
                with self.lock:
                    socket.send_fds(self.socket, [message], [*(file.fileno() for file in files), theirs])
            finally:
                os.close(theirs)  # else the end of the copy would not end the pipe
            process = self.number_of(answers)
            if select.select([answers], [], [], timeout)[0]:
                return self.number_of(answers)
            os.kill(process, signal.SIGKILL)
            return None
        finally:
            os.close(answers)

    def number_of(self, answers):
        content = os.read(answers, 4)
        if len(content) != 4:
            raise ChildProcessError(f"the program does not start with {self.process.args}")
        return struct.unpack("i", content)[0]
