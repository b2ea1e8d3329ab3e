"""Released results: frozen values, their tables and pictures."""
