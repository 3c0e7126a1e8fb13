"""How certain clusters are: for each cluster, for each sample and by each view."""
