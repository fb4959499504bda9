"""Files that are written whole or not at all, strict JSON and TOML, and printable text.

- `format_version`: names of file formats, and the error for a file of another version
- `storage`: atomic writes, locks, and reading of ordinary files
- `strict_json`: canonical JSON, and a reader that refuses what is ambiguous
- `strict_toml`: TOML files that people write by hand
- `text`: names, keys and digests as texts, and texts that a terminal can print
- `text_tables`: small tables as aligned text and as HTML
"""
