"""Where an array lives on the device, fenced: poison everywhere that is not an element.

An arena is one stretch of device memory per array: a guard, the span of the elements (with whatever lies
between them in a strided layout), a guard. All of it starts as poison, so that afterwards an
element still poisoned was never written, and poison gone between or around the elements means a
write outside. Each repeat launch has its own poison: bits that equal it in every repeat were
not written by the kernel, whatever the dtype.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.execute.formats import numpy_dtype
from harness.execute.protocol import ArrayValue

GUARD_BYTES = 4096
ALIGNMENT = 512
"""Bytes; the driver's own allocations are aligned no less, so `offset` 0 is as aligned as torch's memory."""

_WIDE_POISONS = (0x7FFB7FFB, 0x7FF97FF9, 0x7FF37FF3, 0x7FE77FE7)
_BYTE_POISONS = (0x7F7F7F7F, 0x7D7D7D7D, 0x7B7B7B7B, 0x77777777)
"""32-bit patterns with equal halves (equal bytes), so that every element of a size sees the same bits.
The wide ones are NaNs in bfloat16, float16, float32 and float64, with payloads that no GPU
instruction makes (a computed NaN is 0x7FFF…); the first of the others is a NaN in both 8-bit formats."""

_UNSIGNED: dict[int, Any] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Elements = np.ndarray[Any, np.dtype[Any]]


def poison_word(itemsize: int, repeat: int) -> int:
    """The 32-bit pattern that fills arenas of this element size before launch number `repeat`."""
    words = _BYTE_POISONS if itemsize == 1 else _WIDE_POISONS
    return words[repeat % len(words)]


@dataclass(frozen=True)
class Arena:
    """Sizes and offsets in bytes."""

    array: ArrayValue
    itemsize: int
    span_bytes: int
    size: int

    @classmethod
    def of(cls, array: ArrayValue) -> Arena:
        itemsize = numpy_dtype(array.dtype).itemsize
        if len(array.shape) != len(array.strides):
            raise ValueError(
                f"array {array.name}: {len(array.shape)} extents but {len(array.strides)} strides"
            )
        if min((*array.shape, *array.strides, array.offset), default=0) < 0:
            raise ValueError(f"array {array.name}: extents, strides and offset must not be negative")
        empty = 0 in array.shape
        last = sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True))
        span = 0 if empty else (last + 1) * itemsize
        body = -(-(array.offset * itemsize + span) // ALIGNMENT) * ALIGNMENT
        return cls(array, itemsize, span, GUARD_BYTES + body + GUARD_BYTES)

    @property
    def first(self) -> int:
        """Where element 0 lies, from the arena's start."""
        return GUARD_BYTES + self.array.offset * self.itemsize

    @property
    def contiguous(self) -> bool:
        expected = 1
        for size, stride in zip(reversed(self.array.shape), reversed(self.array.strides), strict=True):
            if size != 1 and stride != expected:
                return False
            expected *= size
        return True

    def elements(self, memory: Bytes) -> Elements:
        """A view of the elements in a host copy of the arena, in logical order."""
        dtype = numpy_dtype(self.array.dtype)
        inside = memory[self.first : self.first + self.span_bytes]
        if 0 in self.array.shape:
            return np.empty(self.array.shape, dtype)
        strides = tuple(s * self.itemsize for s in self.array.strides)
        # As plain integers first: NumPy cannot lay out a type that it has no name for, such as float8_e5m2.
        plain = inside.view(_UNSIGNED[self.itemsize])
        return np.lib.stride_tricks.as_strided(plain, self.array.shape, strides).view(dtype)

    def poisoned(self, repeat: int = 0) -> Bytes:
        """A host image of the arena with nothing but poison."""
        return np.full(self.size // 4, poison_word(self.itemsize, repeat), np.uint32).view(np.uint8)

    def image(self, values: Elements, repeat: int = 0) -> Bytes:
        """A host image of the arena with these elements in it."""
        memory = self.poisoned(repeat)
        if values.size:
            self.elements(memory)[...] = values
        return memory

    def outside_bytes(self, memory: Bytes, repeat: int = 0) -> int:
        """How many bytes around and between the elements are no longer poison."""
        word = poison_word(self.itemsize, repeat)
        if self.contiguous:
            pattern = np.frombuffer(word.to_bytes(4, "little") * 2, np.uint8)
            head, tail = self.first, self.first + self.span_bytes
            return sum(
                int(np.count_nonzero(part != np.resize(pattern[start % 4 : start % 4 + 4], part.size)))
                for start, part in ((0, memory[:head]), (tail, memory[tail:]))
                if part.size
            )
        fenced = memory.copy()
        inside = self.elements(fenced).view(_UNSIGNED[self.itemsize])
        inside[...] = self.poison_bits(repeat)
        words = fenced.view(np.uint32)
        if not np.any(words != np.uint32(word)):
            return 0
        return int(np.count_nonzero(fenced != self.poisoned(repeat)))

    def bits(self, memory: Bytes) -> Elements:
        """The elements' bit patterns as unsigned integers, in logical order, contiguous."""
        return np.ascontiguousarray(self.elements(memory)).view(_UNSIGNED[self.itemsize])

    def poison_bits(self, repeat: int) -> int:
        """The bits of a poisoned element, as an unsigned integer of its size."""
        word = poison_word(self.itemsize, repeat)
        return int.from_bytes(word.to_bytes(4, "little") * 2, "little") & ((1 << 8 * self.itemsize) - 1)
