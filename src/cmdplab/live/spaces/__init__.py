"""States and actions of environments from outside as whole numbers: flattened, or cut into cells.

What belongs here knows spaces and single observations; it plays nothing and learns nothing.
"""

from cmdplab.live.spaces.codecs import Cells, Code, Named, Several, Whole, described, restored
from cmdplab.live.spaces.discretise import Discretiser, Grid, Quantiles
from cmdplab.live.spaces.numbering import Spaces

__all__ = [
    "Cells",
    "Code",
    "Discretiser",
    "Grid",
    "Named",
    "Quantiles",
    "Several",
    "Spaces",
    "Whole",
    "described",
    "restored",
]
