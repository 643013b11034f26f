"""The settings of algorithms, each declared once: type, default, range, words, who has it.

What takes or shows settings follows from `SETTINGS`: `row.with_settings`, the keys of an experiment
file, the options of `cmdplab run`, the settings in a record and the hash that names its folder,
labels, columns, JSON, and the table in docs/experiments.md. A new setting is a field of
`table.Settings`, and a field of that name on the rows of the families that have it. How a row uses
its settings is no matter of this room.
"""

from cmdplab.settings.declaration import (
    ACCURACY,
    EPISODES,
    MARGIN,
    MOST_EPISODES,
    SAFE_POLICY,
    SLATER_GAP,
    UNIT,
    Declared,
)
from cmdplab.settings.table import (
    SETTINGS,
    Settings,
    check_setting,
    settings_table,
    with_fields,
    without_none,
)

__all__ = [
    "ACCURACY",
    "EPISODES",
    "MARGIN",
    "MOST_EPISODES",
    "SAFE_POLICY",
    "SETTINGS",
    "SLATER_GAP",
    "UNIT",
    "Declared",
    "Settings",
    "check_setting",
    "settings_table",
    "with_fields",
    "without_none",
]
