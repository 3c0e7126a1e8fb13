"""What comes in: `View`, one table with everything known about it, and `Views`, tables of the same samples."""
