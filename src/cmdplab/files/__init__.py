"""The one door for files: whatever is not the package's own is read through it.

Sizes are known before memory is asked for, nothing is ever unpickled or evaluated, digests are
checked wherever there are any, and whatever is wrong is one sentence that names the file.
"""

from cmdplab.files.arrays import read_npy, read_npz, read_sealed_npz, write_sealed_npz
from cmdplab.files.digests import DIGEST, NoDigestWarning, digest_of_arrays, sealed, unsealed
from cmdplab.files.read import (
    LARGEST,
    MissingError,
    file_digest,
    parse_json,
    parse_toml,
    read_bytes,
    read_json,
    read_text,
    read_toml,
)
from cmdplab.files.tables import read_table, write_table

__all__ = [
    "DIGEST",
    "LARGEST",
    "MissingError",
    "NoDigestWarning",
    "digest_of_arrays",
    "file_digest",
    "parse_json",
    "parse_toml",
    "read_bytes",
    "read_json",
    "read_npy",
    "read_npz",
    "read_sealed_npz",
    "read_table",
    "read_text",
    "read_toml",
    "sealed",
    "unsealed",
    "write_sealed_npz",
    "write_table",
]
