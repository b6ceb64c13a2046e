"""Tests of the OAuth client."""
