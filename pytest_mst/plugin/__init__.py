"""The pytest plugin: the only place that knows pytest, pluggy and xdist."""
