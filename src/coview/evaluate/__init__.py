"""The consensus of many clusterings of one data set: its members, its tree, and the number of clusters."""
