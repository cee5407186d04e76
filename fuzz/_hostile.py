"""Something else in the place of an argument: what campaigns change calls by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


class Odd:
    """Not a number, whatever it says."""

    def __index__(self) -> int:
        """Refuse."""
        raise ValueError("no index")

    def __float__(self) -> float:
        """Be no number."""
        return float("nan")

    def __len__(self) -> int:
        """Claim to be long."""
        return 1 << 40


INTS = (0, 1, -1, 2, 7, 255, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**32, -(2**31))
INTS = (*INTS, 2**53, 2**62, 2**63 - 1, -(2**63), 2**63, 2**64, 10**40, -(10**40))
FLOATS = (0.0, -0.0, 0.5, 1.0, -1.0, 1e-3, 2.0**-20, 2.0**-52, 5e-324, 1e-300, 1e300)
FLOATS = (*FLOATS, 1.8e308 / 1.01, float("inf"), -float("inf"), float("nan"), 3.0)
OTHERS = (None, "text", b"bytes", (), [], {}, Odd(), object(), True, 1 + 2j, int)
DTYPES = ("u1", "u2", "u4", "u8", "i1", "i4", "i8", "f2", "f4", "f8", ">f8", ">i8")
DTYPES = (*DTYPES, "?", "O", "S3", "U2", "M8[s]", "c16", "i4,f8")


def pick(rng: np.random.Generator, choices: Any) -> Any:
    """Choose one; numpy would make an array of them."""
    return choices[int(rng.integers(len(choices)))]


def mutated(rng: np.random.Generator, value: Any) -> Any:
    """Return something else in the place of an argument."""
    if rng.random() < 0.08:
        return pick(rng, OTHERS)
    if isinstance(value, np.ndarray):
        return mutated_array(rng, value)
    if isinstance(value, list):
        return mutated_list(rng, value)
    if isinstance(value, bool):
        return pick(rng, (not value, not value, 2, None, 0.5))
    if isinstance(value, int):
        return pick(rng, (*INTS, value + 1, value - 1, value * 2, float(value)))
    if isinstance(value, float):
        return pick(rng, (*FLOATS, value * 2, value / 2, value + 1, -value))
    return pick(rng, (*OTHERS, *FLOATS, np.ones(3), np.zeros(0)))


def mutated_list(rng: np.random.Generator, value: list[Any]) -> Any:
    """Change a list, or an item of it."""
    if value and rng.random() < 0.7:
        at = int(rng.integers(len(value)))
        return [*value[:at], mutated(rng, value[at]), *value[at + 1 :]]
    ways: tuple[Callable[[], Any], ...] = (
        lambda: value[:-1],
        lambda: value + value[:1],
        list,
        lambda: tuple(value),
        lambda: value[::-1],
        lambda: [value],
        lambda: np.array(len(value)),
        lambda: value * 50,
    )
    return pick(rng, ways)()


def mutated_array(rng: np.random.Generator, value: np.ndarray) -> Any:
    """Change the entries of an array, or how they lie."""
    if value.size and rng.random() < 0.5:
        return with_other_entries(rng, value)
    ways: tuple[Callable[[], Any], ...] = (
        lambda: value[:-1],
        lambda: np.concatenate([value, value[:1]]),
        lambda: value[:0],
        lambda: value.reshape(1, -1),
        lambda: np.array(0, dtype=value.dtype),
        lambda: np.repeat(value, 2, axis=0)[::2],
        lambda: value[::-1],
        lambda: np.asfortranarray(value),
        lambda: misaligned(value),
        lambda: read_only(value),
        lambda: value.astype(pick(rng, DTYPES)),
        value.tolist,
        value.tobytes,
        lambda: memoryview(value),
        lambda: np.broadcast_to(value[:1], value.shape),
        lambda: value.view(np.uint8),
        lambda: np.ma.masked_array(value),
        lambda: np.zeros_like(value),
    )
    with np.errstate(all="ignore"):
        try:
            return pick(rng, ways)()
        except (TypeError, ValueError):  # there is no such array
            return None


def with_other_entries(rng: np.random.Generator, value: np.ndarray) -> np.ndarray:
    """Replace some entries by others that their type can hold."""
    changed = value.copy()
    flat = changed.reshape(-1)
    if rng.random() < 0.25:  # as sound as before, but for what else there is
        top = 9 if value.dtype.kind == "f" else max(int(flat.max()), 0) + 1
        flat[:] = rng.integers(0, min(top, 2**63 - 1), flat.size)
        return changed
    for _ in range(int(rng.integers(1, 4))):
        at = slice(None) if rng.random() < 0.2 else int(rng.integers(flat.size))
        if value.dtype.kind == "f":
            flat[at] = pick(rng, FLOATS)
        else:
            limits = np.iinfo(value.dtype)
            other = pick(rng, (*INTS, int(flat[0]), int(flat[-1]) + 1))
            flat[at] = min(max(other, limits.min), limits.max)
    if rng.random() < 0.2:
        rng.shuffle(flat)
    return changed


def misaligned(value: np.ndarray) -> np.ndarray:
    """Return the same entries one byte off."""
    room = np.empty(value.nbytes + 1, dtype=np.uint8)
    moved = room[1:].view(value.dtype).reshape(value.shape)
    moved[...] = value
    return moved


def read_only(value: np.ndarray) -> np.ndarray:
    """Return a copy that cannot be written to."""
    kept = value.copy()
    kept.flags.writeable = False
    return kept
