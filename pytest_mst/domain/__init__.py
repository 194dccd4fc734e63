"""The nouns of an eval: plain data, no I/O. Imports the standard library and pydantic only."""
