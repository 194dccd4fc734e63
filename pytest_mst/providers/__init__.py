"""Access to model APIs: which one, its failures as types, what it costs."""
