"""HTTP front: a process of its own and one more client of the daemon, which speaks the dialects of
OpenAI, llama-server, Ollama, Mistral and Tabby."""
