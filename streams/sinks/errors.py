"""What may go wrong with a delivery, and with the settings of one. No message quotes a secret, a payload, an answer."""

from __future__ import annotations


class InvalidSinks(Exception):
    """Sinks cannot be made as the policy has them: the message names the file, the key and the remedy."""


class MissingSecret(InvalidSinks):
    """A secret is not where the policy says: not set, or no file that this process may read."""


class Undelivered(Exception):
    """A sink did not take a notification; the message says why, without any part of what was sent or answered.

    Args:
        problem: why.
        status: of the HTTP answer, if there was one.
        shown: what was answered, for a person who tries the sink out; clean, cut short, secrets masked, never logged.
    """

    def __init__(self, problem: str, *, status: int | None = None, shown: str = "") -> None:
        super().__init__(problem)
        self.status = status
        self.shown = shown


class Unavailable(Undelivered):
    """It may take it later.

    Args:
        problem: why it did not now.
        status: of the HTTP answer, if there was one.
        shown: what was answered, as in `Undelivered`.
        retry_after: seconds that it asks to be left alone for; None when it does not say.
    """

    def __init__(
        self, problem: str, *, status: int | None = None, shown: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(problem, status=status, shown=shown)
        self.retry_after = retry_after


class Refused(Undelivered):
    """It never will take this one."""


class Gone(Refused):
    """It never will take any (HTTP 410): it is not asked again before the policy is read anew."""
