"""Files that are written whole or not at all, strict JSON and TOML, and printable text."""
