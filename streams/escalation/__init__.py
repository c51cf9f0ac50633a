"""The escalation consumer: reads alerts and answers, and writes what is to be done next, each step exactly once.

`ladder` decides (pure), `words` and `report` word what agents and people are told; `consumer` and what it uses do the
Kafka part. It must not read agents' events: what it needs is in the alerts and in what workers report of the tasks.
"""
