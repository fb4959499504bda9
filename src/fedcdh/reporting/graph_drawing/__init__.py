"""Layout and drawing of graphs."""
