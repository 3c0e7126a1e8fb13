"""Preprocessing of views: steps learnt at fit and applied to new rows, and profiles of views."""
