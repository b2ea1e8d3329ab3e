"""The only code that touches private rows: reading, charging, releasing."""
