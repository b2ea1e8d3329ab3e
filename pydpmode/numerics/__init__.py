"""Arrays in, arrays out. Nothing here has heard of privacy."""
