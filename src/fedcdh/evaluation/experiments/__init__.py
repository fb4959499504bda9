"""The paper's experiments and ours, each a TOML file: `fedcdh experiment NAME` runs one."""
