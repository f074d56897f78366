"""Next edits: the consequences of what was changed just now, looked up or asked of a model."""
