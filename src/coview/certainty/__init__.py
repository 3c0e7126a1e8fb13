"""How certain the results for each sample are."""
