"""What can go wrong with the broker, told in words for the person who started it. No Java stack trace gets this far."""


class BrokerError(Exception):
    """The broker cannot start or has died: the message says why and what to do."""
