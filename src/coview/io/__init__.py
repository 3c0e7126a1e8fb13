"""Files: views and known classes are read, labels are written; nothing in a file is executed."""

from coview.io.describe import describe_file
from coview.io.labels import read_labels, write_labels
from coview.io.load import Loaded, read_views
from coview.io.stream import ViewsReader, label_file

__all__ = ["Loaded", "ViewsReader", "describe_file", "label_file", "read_labels", "read_views", "write_labels"]
