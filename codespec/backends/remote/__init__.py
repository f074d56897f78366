"""Models that another program serves, here or on another machine: generators over HTTP.

The index, the context, the stop at the unit's end and post-processing stay with the engine; a
server continues a prompt, in ids where it takes them, else in text.
"""
