"""Files: views and known classes that are read, labels that are written; nothing in a file is ever executed."""

from coview.io.describe import describe_file
from coview.io.labels import read_labels, write_labels
from coview.io.load import Loaded, read_views

__all__ = ["Loaded", "describe_file", "read_labels", "read_views", "write_labels"]
