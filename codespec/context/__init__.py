"""From a document and a cursor to the tokens the model reads."""
