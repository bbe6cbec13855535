"""The pages of a report: sections as HTML and Markdown, their figures, and the page that explains the idea."""
