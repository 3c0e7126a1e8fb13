"""Preprocessing of views: steps that are learnt at fit and applied to new rows, and profiles of views."""
