"""The report for other programs: JSON, CSV, JUnit, Markdown, SARIF and more."""
