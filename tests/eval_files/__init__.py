"""Tests of reading eval configs and datasets."""
