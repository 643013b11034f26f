"""Reading and writing of files, for the whole package.

The size of a file is checked before memory is allocated. Nothing is unpickled or evaluated. Stated
digests are checked. Each error is one sentence that names the file.
"""

from cmdplab.files.arrays import (
    digest_of_arrays as digest_of_arrays,
    put_sealed as put_sealed,
    read_npy as read_npy,
    read_npz as read_npz,
    read_sealed_npz as read_sealed_npz,
    write_sealed_npz as write_sealed_npz,
)
from cmdplab.files.read import (
    DIGEST as DIGEST,
    LARGEST as LARGEST,
    MissingError as MissingError,
    NoDigestWarning as NoDigestWarning,
    file_digest as file_digest,
    parse_json as parse_json,
    parse_toml as parse_toml,
    read_bytes as read_bytes,
    read_json as read_json,
    read_text as read_text,
    read_toml as read_toml,
    sealed as sealed,
    unsealed as unsealed,
)
from cmdplab.files.tables import read_table as read_table, write_table as write_table
