"""Set the links of the package's metadata from the repository's address in CITATION.cff."""

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Links(MetadataHookInterface):
    """The links under "Project links" on PyPI; none before CITATION.cff has an address."""

    def update(self, metadata: dict) -> None:
        """Add `urls`, which pyproject.toml declares as dynamic."""
        text = (Path(self.root) / "CITATION.cff").read_text(encoding="utf-8")
        found = re.search(r'^repository-code: "?(https://[^"\s]+?)/?"?$', text, re.MULTILINE)
        if found:
            address = found[1]
            metadata["urls"] = {
                "Source": address,
                "Documentation": f"{address}/blob/main/docs/index.md",
                "Changelog": f"{address}/blob/main/CHANGELOG.md",
                "Issues": f"{address}/issues",
            }
