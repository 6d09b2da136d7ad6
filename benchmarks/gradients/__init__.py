"""How good estimators of the gradient of E[f(z)] are, beside the exact gradient."""
