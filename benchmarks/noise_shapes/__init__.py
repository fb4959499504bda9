"""Studies whose noise has any shape and size, and counts of right, reversed and open arrows."""
