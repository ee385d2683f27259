"""The methods that are compared: those of this package and published ones, all under one small port."""
