"""Sphinx's settings of the site."""

project = "fabrictune"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "index"
exclude_patterns = ["files"]
highlight_language = "text"
smartquotes = False  # of two hyphens it would make a dash

myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure"]  # a language that Pygments does not know is shown without colours

html_theme = "furo"
html_title = "fabrictune"
html_copy_source = False
html_show_search_summary = False  # it would be fetched, which browsers refuse to a page that is read from a folder
html_show_sphinx = False
html_show_copyright = False
