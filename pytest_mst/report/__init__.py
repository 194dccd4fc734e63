"""From stored records to figures, and from figures to what people and programs read."""
