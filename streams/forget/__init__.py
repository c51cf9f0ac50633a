"""Forgetting a session or task everywhere Traction remembers it, and telling what stays behind and for how long.

The word goes the way of any decision, through the control topic, so that workers and escalation erase in their own
transactions. It must not touch records of others, nor claim that a topic which only ages can be erased from.
"""
