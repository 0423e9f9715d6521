# SPDX-License-Identifier: MIT
"""As much of PyTorch's interface as assay_torch.py and a decode adapter use, over plain
bytes: enough to test them where there is no PyTorch. It computes nothing."""
import ctypes
from math import prod

from . import cuda


class dtype:  # pylint: disable=invalid-name
    def __init__(self, name, itemsize):
        self.name, self.itemsize = name, itemsize

    def __repr__(self):
        return f'torch.{self.name}'


uint8 = dtype('uint8', 1)
float8_e4m3fn = dtype('float8_e4m3fn', 1)
float8_e5m2 = dtype('float8_e5m2', 1)
bfloat16 = dtype('bfloat16', 2)
float32 = dtype('float32', 4)
int32 = dtype('int32', 4)


def row_major(shape):
    return tuple(prod(shape[i + 1:]) for i in range(len(shape)))


class Tensor:
    def __init__(self, memory, kind, shape, stride):
        self.memory, self.dtype = memory, kind
        self.shape, self.strides = tuple(shape), tuple(stride)

    def stride(self, axis):
        return self.strides[axis]

    def view(self, kind):
        if self.strides != (1,):
            raise RuntimeError('only flat tensors are viewed as another dtype')
        size = self.shape[0] * self.dtype.itemsize
        return Tensor(self.memory, kind, (size // kind.itemsize,), (1,))

    def as_strided(self, shape, stride):
        last = sum((size - 1) * step for size, step in zip(shape, stride))
        if prod(shape) and (last + 1) * self.dtype.itemsize > len(self.memory):
            raise RuntimeError('beyond the storage')
        return Tensor(self.memory, self.dtype, shape, stride)

    def to(self, _, copy):
        return Tensor(bytearray(self.memory) if copy else self.memory, self.dtype,
                      self.shape, self.strides)

    def positions(self):
        offsets = [0]
        for size, step in zip(self.shape, self.strides):
            offsets = [offset + i * step for offset in offsets for i in range(size)]
        return offsets

    def codes(self):
        """All elements' bits, row-major."""
        size = self.dtype.itemsize
        return [int.from_bytes(self.memory[at * size:(at + 1) * size], 'little')
                for at in self.positions()]

    def set_codes(self, codes):
        size = self.dtype.itemsize
        for at, code in zip(self.positions(), codes):
            self.memory[at * size:(at + 1) * size] = code.to_bytes(size, 'little')

    def contiguous(self):
        copied = empty(self.shape, self.dtype)
        copied.set_codes(self.codes())
        return copied

    def detach(self):
        return self

    def cpu(self):
        return self

    def numel(self):
        return prod(self.shape)

    def element_size(self):
        return self.dtype.itemsize

    def data_ptr(self):
        return ctypes.addressof(ctypes.c_char.from_buffer(self.memory))


def empty(shape, kind):
    return Tensor(bytearray(prod(shape) * kind.itemsize), kind, shape, row_major(shape))


def full(shape, value, *, dtype, device):  # pylint: disable=redefined-outer-name
    if device != 'cpu' or dtype is not uint8:
        raise RuntimeError('only bytes on the CPU')
    return Tensor(bytearray([value]) * prod(shape), dtype, shape, row_major(shape))


def frombuffer(data, *, dtype):  # pylint: disable=redefined-outer-name
    if not data:
        raise ValueError('both buffer length (0) and count (-1) must not be 0')
    return Tensor(bytearray(data), dtype, (len(data) // dtype.itemsize,), (1,))
