"""Where kernels and the results of searches are kept, by the rule of lib/Runtime/CacheDirectory.cpp."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Optional


def find_cache_folder() -> Optional[Path]:
    """None where nothing is kept."""
    if os.environ.get("ATTN_CACHE") == "0":
        return None
    named = os.environ.get("ATTN_CACHE_DIR")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base, "attn")
