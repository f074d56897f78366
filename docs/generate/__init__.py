"""Parts of the pages that are made from the code, and the site that is made from the pages."""
