"""What does a grid search cost, where does it go, and what would ten times the rows cost?

    pip install scikit-learn
    python examples/sklearn_search.py

A pipeline of scaling, principal components and a classifier on 1,797 handwritten digits that come with scikit-learn.
"""

from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import bitwatt
from bitwatt.units import format_count


def main() -> None:
    X, unseen, y, answers = train_test_split(*load_digits(return_X_y=True), random_state=0)
    pipeline = Pipeline(
        [("scale", StandardScaler()), ("reduce", PCA(random_state=0)), ("classify", LogisticRegression(max_iter=500))]
    )
    search = GridSearchCV(pipeline, {"reduce__n_components": [16, 32], "classify__C": [0.1, 1.0]}, cv=3)
    with bitwatt.measure("digits") as session:
        search.fit(X, y)
        accuracy = search.score(unseen, answers)
        bitwatt.metric("accuracy", accuracy)

    flops = bitwatt.totals(session.run)
    print(f"{search.best_params_}: {accuracy:.1%} right")
    print(f"{flops.coverage}; {format_count(flops.total, 'FLOP')}")
    steps: dict[str, int] = {}
    for scope, amount in flops.by("scope").items():
        step = scope.rpartition(".")[2]
        steps[step] = steps.get(step, 0) + amount
    for step, amount in sorted(steps.items(), key=lambda item: -item[1])[:4]:
        print(f"  {step:<12} {format_count(amount, 'FLOP'):>12}  {amount / flops.total:6.1%}")

    best = search.best_estimator_
    for rows in (1_347, 13_470):  # counted from the sizes, nothing is fitted
        steps_taken = {"n_iter": int(best["classify"].n_iter_[0])}
        planned = bitwatt.estimate(best, (rows, 64), classes=10, assume=steps_taken)
        print(f"one fit on {rows:>6,} rows: {format_count(bitwatt.totals(planned).total, 'FLOP'):>12}")


if __name__ == "__main__":
    main()
