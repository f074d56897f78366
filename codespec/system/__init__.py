"""The operating system: folders, files, processes, other programs, progress on a terminal."""
