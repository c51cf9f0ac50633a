"""The escalation consumer: reads alerts and writes what is to be done about them, each alert exactly once.

`policy` decides (pure), `report` words the page for people, `ownership` and `consumer` do the Kafka part. It must not
read agents' events or keep state of sessions: what it needs is in the alert.
"""
