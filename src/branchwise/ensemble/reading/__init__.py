"""What a fitted ensemble tells: rules, importances, proximities, quantiles, pages."""
