"""Charts and graphs as SVG."""
