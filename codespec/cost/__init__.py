"""Cost curve of the target's passes on this machine: measured once, refined by real passes, apart
for each number of threads."""
