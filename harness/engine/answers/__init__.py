"""Cases, and what the CPU EP and other references answer about them."""
