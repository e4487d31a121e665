# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A program in the foreground of a terminal of its own, as a user's shell starts it."""
import fcntl
import os
import pty
import select
import struct
import termios
import time


class Terminal:
    """What it prints comes in `text`, with \\r\\n for line ends; `close` is the user closing the window."""

    def __init__(self, argv, env=None, cwd=None, columns=120, stderr=None):
        self.text, self.status, self.open = "", None, True
        self.pid, self.fd = pty.fork()
        if not self.pid:
            try:
                fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
                if stderr:
                    os.dup2(os.open(stderr, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
                os.chdir(cwd or ".")
                os.execvpe(argv[0], argv, env or os.environ)
            finally:
                os._exit(127)

    def read(self, seconds=0.1):
        if not self.open or not select.select([self.fd], [], [], seconds)[0]:
            return
        try:
            data = os.read(self.fd, 65536)
        except OSError:		# EIO: nobody has it open any more
            data = b""
        self.open = bool(data)
        self.text += data.decode("utf-8", "replace")

    def wait_for(self, words, seconds=30):
        """True once it has printed the words."""
        end = time.monotonic() + seconds
        while words not in self.text and self.open and time.monotonic() < end:
            self.read()
        return words in self.text

    def type(self, keys):
        os.write(self.fd, keys.encode())

    def close(self):
        os.close(self.fd)
        self.open = False

    def wait(self, seconds=60):
        """The exit status, or minus a signal's number; all that it printed is in text then."""
        end = time.monotonic() + seconds
        while self.status is None and time.monotonic() < end:
            self.read()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
            elif not self.open:
                time.sleep(0.05)
        while self.open and self.status is not None:
            before = len(self.text)
            self.read(0.3)
            if len(self.text) == before:
                break
        return self.status
