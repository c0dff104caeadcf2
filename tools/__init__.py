"""Programs for developers; the wheel has none of them."""
