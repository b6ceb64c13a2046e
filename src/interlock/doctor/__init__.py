"""Checks of a connection to one remote server, each in a file of its own, in the order of the stages. They change nothing."""
