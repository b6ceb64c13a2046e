"""What is wrong with a machine, a host, a server or a connection: one check a file, in the order of the stages. They change nothing."""
