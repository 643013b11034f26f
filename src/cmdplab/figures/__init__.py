"""Figures from records: curves with bands, portraits of a policy, algorithms side by side.

Nothing here runs or judges an algorithm. `figure` returns a Matplotlib figure.
"""

from typing import TYPE_CHECKING, Any

from cmdplab.errors import check_installed

check_installed("matplotlib")

if TYPE_CHECKING:
    from cmdplab.figures.plots import figure

__all__ = ["figure"]


def __getattr__(name: str) -> Any:
    """Return `figure`, which loads Matplotlib at its first use."""
    if name != "figure":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from cmdplab.figures.plots import figure

    return figure
