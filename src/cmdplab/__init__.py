"""cmdplab: a laboratory for online constrained Markov decision processes.

`__init__.pyi` lists the public names and subpackages. Each is loaded at its first use, so that
`import cmdplab` takes no time.
"""

from pathlib import Path

import lazy_loader

__version__ = "0.2.0.dev0"

__getattr__, __dir__, _listed = lazy_loader.attach_stub(__name__, __file__)
_FOUND = {each.stem for each in Path(__file__).parent.iterdir()}  # modules and subpackages
_SUBPACKAGES = sorted(_FOUND & {*_listed})
__all__ = sorted({*_listed} - _FOUND)
