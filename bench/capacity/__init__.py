"""How many people who type at once one server holds: a server that batches, simulated event by
event.

`arrivals` are keystrokes of a history written again; `engines` the times of a step by its tokens;
`simulation` the events; `__main__` the tables; `check` the same arrivals against a real engine.
"""
