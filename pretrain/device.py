"""The machine: which device, which arithmetic."""

from __future__ import annotations

import contextlib
import ctypes
from functools import cache
from pathlib import Path

import torch

from provenance import UserError

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def pick_device() -> torch.device:
    """The current CUDA device where there is one, else the CPU."""
    return (
        torch.device("cuda", torch.cuda.current_device())
        if torch.cuda.is_available()
        else torch.device("cpu")
    )


@cache
def _cpu_flags() -> frozenset[str]:
    """Instruction sets of the CPU as Linux names them; empty elsewhere."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n"):
            if line.startswith("flags"):
                return frozenset(line.split(":", 1)[1].split())
    return frozenset()


def default_dtype(device: torch.device) -> str:
    """``bf16`` where ``device`` multiplies bf16 matrices fast, else ``fp32``."""
    if device.type == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp32"
    return "bf16" if _cpu_flags() & {"amx_bf16", "avx512_bf16"} else "fp32"


def autocast(device: torch.device, dtype: str) -> contextlib.AbstractContextManager:
    """Context in which matrix products run in ``dtype`` (``fp32``: nothing changes); weights stay fp32.

    Raises:
        UserError: ``dtype`` is none of :data:`DTYPES`.
    """
    if dtype not in DTYPES:
        raise UserError(f"dtype {dtype!r} is not known; choose one of {', '.join(DTYPES)}")
    return torch.autocast(device.type, dtype=DTYPES[dtype], enabled=dtype != "fp32")


def keep_freed_memory() -> None:
    """Have glibc reuse freed tensors instead of handing them back to the system after every step.

    By default each tensor of 128 KiB or more is mapped and zeroed anew: 5 to 15 % of a small model's step on
    a CPU. Does nothing where the C library is another one.
    """
    mmap_threshold, trim_threshold = -3, -1  # M_MMAP_THRESHOLD and M_TRIM_THRESHOLD of malloc.h
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL("libc.so.6")
        library.mallopt(mmap_threshold, 32 * 2**20)
        library.mallopt(trim_threshold, 2**31 - 1)
