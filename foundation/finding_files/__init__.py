"""Findings as files that CI systems read: SARIF and JUnit."""
