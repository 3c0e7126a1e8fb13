"""What everything builds on: checks of parameters, names and numbers as text, threads, progress, files."""
