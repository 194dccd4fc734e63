"""The dry-run proxy: stands before every server, forwards reads, stops writes and records them."""
