"""What else brings servers and commands to a host: plugins and extensions, hooks, skills, rules files. Reads only."""
