"""Home copy, launcher, updates and the setup ladder: how Interlock stays where hosts look for it, and stays current."""
