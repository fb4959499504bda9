"""A process that dies at a given line of the code that writes: what is left of its files is then looked at."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from types import FrameType
from typing import Any


def killer(step: int, writers: tuple[str, ...]) -> Any:
    """A trace function that ends this process, without any farewell, at the step-th line of these modules."""
    lines = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal lines
        if Path(frame.f_code.co_filename).name not in writers:
            return None
        if event == "line":
            lines += 1
            if lines == step:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    return trace
