"""The figure that notebooks show: Matplotlib's figure, without pyplot's list of open figures."""

from __future__ import annotations

import io

from matplotlib.figure import Figure

DOTS_PER_INCH = 160  # a column is then 560 pixels wide


class PaperFigure(Figure):
    """A Matplotlib figure that a notebook shows when it is the value of a cell."""

    def _repr_png_(self) -> bytes:
        picture = io.BytesIO()
        self.savefig(picture, dpi=DOTS_PER_INCH, format="png")
        return picture.getvalue()
