"""The wire contract of Traction: every record that crosses a topic, as a typed struct.

The structs are the source of the JSON Schema files, the AsyncAPI document and the examples beside them. This package
decodes and encodes records; it must not know detectors, Kafka clients or settings.
"""
