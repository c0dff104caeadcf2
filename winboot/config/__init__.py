"""What is wanted: profile and inventory, checked and merged into one NodeSpec for each machine, with the data behind them."""
