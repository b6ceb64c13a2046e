"""`interlock doctor bridge`: each check against real servers on loopback, and what it must leave alone."""
