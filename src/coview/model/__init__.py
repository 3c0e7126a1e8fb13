"""What is learnt, as a value (`Model`), and the base class of all estimators (`Clusterer`), which asks it."""
