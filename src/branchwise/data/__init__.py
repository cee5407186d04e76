"""Tables as users have them: schema, encoded columns, targets and weights."""
