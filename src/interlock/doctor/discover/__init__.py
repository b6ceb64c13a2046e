"""What is installed here, which hosts point to it, and whether the server can be reached and spoken to."""
