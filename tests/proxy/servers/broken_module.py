"""A module that cannot be imported."""

raise RuntimeError("the shelf fell down")  # noqa: EM101
