"""scikit-learn estimators, which turn parameters into a recipe and fit a model."""

from branchwise.estimators.c45 import C45Classifier
from branchwise.estimators.cart import CARTClassifier, CARTRegressor
from branchwise.estimators.id3 import ID3Classifier

__all__ = ["C45Classifier", "CARTClassifier", "CARTRegressor", "ID3Classifier"]
