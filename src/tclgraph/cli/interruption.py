"""Ctrl-C on the command line.

Python turns Ctrl-C into an exception wherever it happens to be. Inside an import of torch or a
compilation that exception may be lost or crash the process, so a command exits at once instead,
except where it has something to save.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

EXIT_CODE = 130
"""Exit code of a command that ends by Ctrl-C: 128 plus the number of the signal, as in a shell."""
_SHOW_CURSOR = "\x1b[?25h"


def exit_on_ctrl_c() -> None:
    """Make Ctrl-C end the process at once, unless the process was started to ignore it."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _exit)


@contextmanager
def keyboard_interrupts(*signals: signal.Signals) -> Iterator[None]:
    """Raise `KeyboardInterrupt` on Ctrl-C and on the given signals while the block runs."""
    with ExitStack() as stack:
        for number in (signal.SIGINT, *signals):
            if signal.getsignal(number) is not signal.SIG_IGN:
                original = signal.signal(number, signal.default_int_handler)
                stack.callback(signal.signal, number, original)
        yield


def _exit(*_: object) -> None:
    if sys.stderr.isatty():  # a progress bar has hidden the cursor
        os.write(sys.stderr.fileno(), f"{_SHOW_CURSOR}\n".encode())
    os._exit(EXIT_CODE)
