"""Methods that scikit-learn's mixins define for all who inherit them."""

from bitwatt.backends.sklearn.apriori.registry import calls

calls("base.ClassifierMixin base.RegressorMixin", "score", "predict")
calls("base.TransformerMixin", "fit_transform", "fit", "transform")
calls("base.ClusterMixin", "fit_predict", "fit")
calls("cluster._BaseKMeans cluster.AffinityPropagation cluster.DBSCAN cluster.HDBSCAN cluster.AgglomerativeClustering "
      "cluster.FeatureAgglomeration neighbors.LocalOutlierFactor", "fit_predict", "fit")  # fmt: skip
calls("cluster._BaseKMeans cross_decomposition._PLS cross_decomposition.PLSSVD neighbors.KNeighborsTransformer "
      "neighbors.RadiusNeighborsTransformer decomposition.LatentDirichletAllocation ensemble._BaseVoting "
      "ensemble._BaseStacking ensemble.StackingRegressor", "fit_transform", "fit", "transform")  # fmt: skip
calls("neighbors.KNeighborsClassifier neighbors.RadiusNeighborsClassifier linear_model.LogisticRegressionCV "
      "linear_model.RANSACRegressor", "score", "predict")  # fmt: skip
calls("base.OutlierMixin", "fit_predict", "fit", "predict")
