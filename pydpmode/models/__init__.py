"""Estimators: each works on a released (or a plain) surface and never sees a row."""
