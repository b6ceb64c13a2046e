"""Tests of what hosts connect to."""
