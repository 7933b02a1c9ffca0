"""scikit-learn's estimators, as executed. A rule counts what its method does itself: methods of other estimators, and
other public methods of the same one, are ops of their own."""
