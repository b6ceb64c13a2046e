"""Tests of the command line, from outside: processes, exit codes, terminals."""
