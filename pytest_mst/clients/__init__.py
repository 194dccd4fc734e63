"""What acts on an input: the client protocol and the clients that come with the package."""
