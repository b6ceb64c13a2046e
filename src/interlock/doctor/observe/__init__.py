"""What was written down about earlier refreshes and logins."""
