"""The version, alone in its file so that every module can import it."""

__version__ = "0.1.0"
