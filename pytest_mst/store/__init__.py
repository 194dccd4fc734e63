"""Runs on disk, in the `mst.run/v1` format: where files are, writing and reading them."""
