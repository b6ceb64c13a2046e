"""Tests of the fixture servers themselves: what they promise to the tests that use them."""
