"""scikit-learn estimators, which turn parameters into a recipe and fit a model."""
