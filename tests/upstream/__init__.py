"""Tests of reaching servers."""
