"""Shows Traction at work on one machine: recorded sessions, a broker, a worker and an escalation consumer.

All is the product itself, in processes of its own; only the agents are played, from sessions written for the purpose.
"""
