"""One attempt from start to stored record: the only wiring of the floor below."""
