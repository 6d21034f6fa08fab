"""Cleaning: the rules, their order, and what decides where each has to look."""
