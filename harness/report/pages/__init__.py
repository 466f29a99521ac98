"""The pages of the site: a view of the report for each, and the templates that show them."""
