"""`interlock login`, `logout` and `grants`, against the lab's servers."""
