"""Rules of findings: one catalog that every finding, the site's settings and the documentation share."""
