"""Reads eval configs and datasets from disk, strictly, and says all that is wrong at once."""
