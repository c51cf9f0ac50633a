"""The sinks: they tell people and their tools what was done about a loop, by the notifications on Kafka.

`settings` reads the policy's tables, one file per kind of sink makes requests of notifications, `delivery` tries until
one is taken or given up, `run` reads the topic, one consumer group per sink. A sink never holds up anything but itself.
"""
