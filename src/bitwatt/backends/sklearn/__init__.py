"""Watch scikit-learn and what follows its manners (XGBoost, LightGBM, CatBoost): one op for each method that computes.

`methods` wraps them on the classes that define them, `facts` reads what a rule needs from the estimator, `probes`
counts calls inside a fit where attributes do not tell, `parallel` brings counts back from workers.
"""
