"""How much is said, as $ATTN_LOG asks for it. Each level says all that those before it do."""

from __future__ import annotations

import logging
import os
import sys
import warnings

from . import _call_log, _log, _observe
from ._library import set_log

LEVELS = "off", "compile", "decisions", "calls", "values"


def start() -> None:
    wanted = os.environ.get("ATTN_LOG", "") or "off"
    if wanted not in LEVELS:
        told = f"ATTN_LOG: expected {', '.join(LEVELS[:-1])} or {LEVELS[-1]}, got {wanted!r}"
        warnings.warn(told, RuntimeWarning, stacklevel=3)
        return
    level = LEVELS.index(wanted)
    if level >= LEVELS.index("compile"):
        _write_to_stderr(_log.logger)
        set_log(_log.logger.info)
    _log.has_decisions[0] = level >= LEVELS.index("decisions")
    if level >= LEVELS.index("calls"):
        _write_to_stderr(_call_log.logger)
        _observe.watch(_call_log.CallLog(has_values=wanted == "values"))


def _write_to_stderr(logger: logging.Logger) -> None:
    if not logger.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("attn: %(message)s"))
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
