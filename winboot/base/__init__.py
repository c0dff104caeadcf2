"""What everything stands on: errors, retries, secrets, private files, clean text. Imports nothing of winboot."""
