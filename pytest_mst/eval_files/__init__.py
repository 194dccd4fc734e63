"""Eval configs and datasets on disk: read strictly, with errors that name file, line and key."""
