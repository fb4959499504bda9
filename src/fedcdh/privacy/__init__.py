"""What keeps a site's own numbers from those who learn the sum: masks that cancel, and noise."""
