"""What the servers offer, under which names and at what context cost. Pure functions over raw JSON: no I/O here."""
