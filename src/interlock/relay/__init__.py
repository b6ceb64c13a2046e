"""What flows between the two sides of a call besides the call: questions, progress, logs, changes, cancels, parked calls."""
