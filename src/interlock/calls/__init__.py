"""What became of a call: verdicts put into answers that a model, a program and a person can act on."""
