"""What happened, as data, and its forms: table, JSON, HTML page, journal."""
