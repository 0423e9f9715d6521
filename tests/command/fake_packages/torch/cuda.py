# SPDX-License-Identifier: MIT
"""A machine without a GPU."""


class OutOfMemoryError(RuntimeError):
    pass


def is_available():
    return False
