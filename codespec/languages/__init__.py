"""Programming languages: their names, file names and grammars."""
