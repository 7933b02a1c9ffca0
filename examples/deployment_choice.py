"""Train a classifier and write what `bitwatt deploy` asks for: the model, and rows it has and has not seen.

    pip install './bitwatt[deploy]' scikit-learn
    python examples/deployment_choice.py
    bitwatt deploy digits.joblib --data test.npz --train train.npz --trust --quick

The digits come with scikit-learn. Put your own model and rows in their place.
"""

import joblib
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


def main() -> None:
    X, unseen, y, answers = train_test_split(*load_digits(return_X_y=True), test_size=0.3, random_state=0)
    model = make_pipeline(StandardScaler(), MLPClassifier((256, 256), max_iter=40, early_stopping=True, random_state=0))
    model.fit(X, y)
    joblib.dump(model, "digits.joblib")
    np.savez("train.npz", X=X, y=y)
    np.savez("test.npz", X=unseen, y=answers)
    print(f"{model.score(unseen, answers):.1%} of {len(unseen)} unseen digits are right; wrote digits.joblib, *.npz")


if __name__ == "__main__":
    main()
