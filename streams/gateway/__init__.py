"""Takes over HTTP what speaks no Kafka, and brings OpenTelemetry's topics of a collector onto those of the contract.

Only what is taken in and answered is decided here; what events mean is for the worker.
"""
