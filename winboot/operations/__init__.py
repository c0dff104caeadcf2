"""What a command sets out to do with machines: join them, follow a group of a cloud, bring a machine back."""
