"""Exports of rules that vote: PMML's RuleSetModel and DMN decision tables."""
