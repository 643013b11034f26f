"""Checks that environments share."""

from cmdplab.errors import InputError


def checked_seed(seed: int) -> None:
    """An instance seed is a number >= 0."""
    if seed < 0:
        raise InputError(f"the instance seed is {seed}, not a number >= 0")


def checked_sizes(**sizes: int) -> None:
    """Sizes are positive."""
    for what, size in sizes.items():
        if size < 1:
            raise InputError(f"{what} is {size}, not a positive number")
