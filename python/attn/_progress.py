"""Progress on a terminal; nothing elsewhere."""

from __future__ import annotations

import os
import sys
import threading
import time

# Seconds before a compilation is told of: who waits for less wonders about nothing.
_PATIENCE = 2.0


class Bar:
    """The steps of a search."""

    def __init__(self, is_shown: bool) -> None:
        self.is_shown = is_shown

    def show(self, what: str, done: int, total: int) -> None:
        if self.is_shown:
            full = 30 * done // max(total, 1)
            sys.stderr.write(f"\rattn.tune: {what:9} [{'#' * full:30}] {done}/{total}")
            sys.stderr.flush()

    def end(self) -> None:
        if self.is_shown:
            sys.stderr.write("\n")


def wait(done: threading.Event, what: str) -> None:
    """Waits, and after 2 seconds tells a terminal what for. The line is gone when the wait is over."""
    if not _is_shown():
        done.wait()
        return
    begin = time.monotonic()
    if done.wait(_PATIENCE):
        return
    width = 0
    try:
        while True:
            line = f"attn: {what} ... {time.monotonic() - begin:.0f} s"
            width = max(width, len(line))
            sys.stderr.write(f"\r{line}")
            sys.stderr.flush()
            if done.wait(1.0):
                return
    finally:
        sys.stderr.write(f"\r{' ' * width}\r")
        sys.stderr.flush()


def _is_shown() -> bool:
    """Whether somebody looks, who has not said $ATTN_LOG=off."""
    if os.environ.get("ATTN_LOG") == "off":
        return False
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):
        # No stderr, or a closed one.
        return False
