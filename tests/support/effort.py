"""How much work something is, counted and not timed: a count is the same on every machine, however busy it is.

`steps` counts the lines of Python that run. Work that is done in C in one step, such as a search with a regular
expression, has no lines to count; `patience` ends what would go on for hours, and nothing else.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

PATIENCE = 300  # seconds of the processor: a thousand times what any of its users takes


def steps(action: Callable[[], object], *, refused: type[Exception] | None = None) -> int:
    """The number of lines of Python run by an action, which may be refused."""
    count = 0

    def line(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return line

    before = sys.gettrace()
    sys.settrace(line)
    try:
        with suppress(*[refused] if refused else []):
            action()
    finally:
        sys.settrace(before)
    return count


@contextmanager
def patience() -> Iterator[None]:
    """End what hangs. Only the processor's time counts, so that a machine with other things to do hurries nobody."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def give_up(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"this hangs: it was not done after {PATIENCE} seconds of the processor")

    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
