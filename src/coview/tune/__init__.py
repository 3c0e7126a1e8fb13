"""Settings chosen without labels: candidates from the look of the data, and what speaks for each of them."""
