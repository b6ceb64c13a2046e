"""Hosts' files changed on disk: locked, recorded before anything is replaced, and put back as they were.

`applying` changes them, `restoring` undoes a run, `recording` holds what was done, `committing` is the one place that
replaces files, `locking` keeps two runs of Interlock apart.
"""
