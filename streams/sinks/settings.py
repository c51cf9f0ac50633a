"""The settings of sinks: what the policy's tables ``[sinks.NAME]`` may say, one struct per type of sink.

Reading checks names, types, ranges and addresses; it reads no secret, so that a policy can be checked where the secrets
are not.
"""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias, get_args
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from schemas.outputs import NotificationKind
from streams.config import suggest
from streams.sinks.addresses import is_loopback_name, is_public, literal
from streams.sinks.errors import InvalidSinks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from schemas.outputs import Notification

MAX_SINKS = 50
"""Each is a consumer group with connections of its own, and a value of the metrics' label."""

ALL_KINDS: tuple[NotificationKind, ...] = get_args(NotificationKind)
"""What `kinds` may name."""

RESOLVING: tuple[NotificationKind, ...] = ("recovered", "ended", "resumed", "false_alarm")
"""Kinds that say that an incident is over."""

KINDS: tuple[NotificationKind, ...] = (
    "escalate_human",
    "abandon",
    "skip_subtask",
    "terminate",
    "refused",
    "unanswered",
    *RESOLVING,
)
"""What sinks tell unless they say otherwise: what asks for a person, and that it is over."""

DEFAULT_FIRING_HOURS = 7 * 24.0
"""How long an alert of Alertmanager's lasts that nothing resolves: as long as escalation remembers an idle task."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_REPO = r"^[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}$"
_AT = re.compile(r" - at `\$\.?(.*)`$")

Variable = Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Path = Annotated[str, Meta(min_length=1)]
Pace = Annotated[float, Meta(ge=0.01, le=1_000)]
Address = Annotated[str, Meta(min_length=1, max_length=2_000)]


class SinkSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type"):
    """What all sinks have.

    ``kinds`` are the kinds of notifications that it tells. ``give_up_minutes`` is for how long one is tried,
    ``per_second`` how many tries there are at most.
    """

    name: str
    kinds: tuple[NotificationKind, ...] = KINDS
    give_up_minutes: Annotated[float, Meta(gt=0, le=1_440)] = 30.0
    per_second: Pace = 10.0

    always_resolves: ClassVar[bool] = False
    """Whether it takes what resolves an incident whatever ``kinds`` says: without, the incident would stay open."""

    secrets: ClassVar[tuple[str, ...]] = ()
    """Settings that may come from a variable ``…_env`` or a file ``…_file``."""

    def named(self, notification: Notification) -> bool:
        """Tell whether the policy chose this sink for a notification."""
        return notification.sinks is None or self.name in notification.sinks

    def tells(self, notification: Notification) -> bool:
        """Tell whether its kind is one that this sink tells."""
        return notification.kind in self.kinds or (self.always_resolves and notification.resolves)


class HttpSettings(SinkSettings, frozen=True, kw_only=True):
    """What sinks have that are reached by HTTP.

    ``timeout_seconds`` is for one try. ``allow_http`` lets a request go unencrypted, ``allow_private`` to an address
    that is not public; both are allowed without where the address is this machine's own, written as such.
    """

    timeout_seconds: Annotated[float, Meta(gt=0, le=120)] = 15.0
    allow_http: bool = False
    allow_private: bool = False


class WebhookSettings(HttpSettings, frozen=True, kw_only=True, tag="webhook"):
    """Any receiver of webhooks: signed as Standard Webhooks says, or in the form of Alertmanager's own webhook."""

    url: Address | None = None
    url_env: Variable | None = None
    url_file: Path | None = None
    format: Literal["standard", "alertmanager"] = "standard"
    secret_env: Variable | None = None
    secret_file: Path | None = None

    secrets: ClassVar[tuple[str, ...]] = ("secret",)


class SlackSettings(HttpSettings, frozen=True, kw_only=True, tag="slack"):
    """An incoming webhook of Slack, whose address is a secret."""

    per_second: Pace = 1.0
    url_env: Variable | None = None
    url_file: Path | None = None

    secrets: ClassVar[tuple[str, ...]] = ("url",)


class PagerDutySettings(HttpSettings, frozen=True, kw_only=True, tag="pagerduty"):
    """A service of PagerDuty's with an integration of the Events API v2."""

    url: Address | None = None
    region: Literal["us", "eu"] = "us"
    routing_key_env: Variable | None = None
    routing_key_file: Path | None = None

    always_resolves: ClassVar[bool] = True
    secrets: ClassVar[tuple[str, ...]] = ("routing_key",)


class GitHubSettings(HttpSettings, frozen=True, kw_only=True, tag="github"):
    """Issues and comments on GitHub or GitHub Enterprise."""

    per_second: Pace = 1.0
    api_url: Address = "https://api.github.com"
    api_version: Annotated[str, Meta(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")] = "2022-11-28"
    repo: Annotated[str, Meta(pattern=_REPO)] | None = None
    labels: Annotated[tuple[Annotated[str, Meta(min_length=1, max_length=50)], ...], Meta(max_length=20)] = (
        "traction",
    )
    token_env: Variable | None = None
    token_file: Path | None = None

    secrets: ClassVar[tuple[str, ...]] = ("token",)


class AlertmanagerSettings(HttpSettings, frozen=True, kw_only=True, tag="alertmanager"):
    """An Alertmanager of Prometheus's, by its API v2. An alert that nothing resolves lasts ``firing_hours``."""

    url: Address | None = None
    url_env: Variable | None = None
    url_file: Path | None = None
    firing_hours: Annotated[float, Meta(gt=0, le=8_760)] = DEFAULT_FIRING_HOURS

    always_resolves: ClassVar[bool] = True


class FileSettings(SinkSettings, frozen=True, kw_only=True, tag="file"):
    """A file on this machine that is appended to."""

    per_second: Pace = 100.0
    path: Path
    format: Literal["jsonl", "markdown"] = "jsonl"


class StdoutSettings(SinkSettings, frozen=True, kw_only=True, tag="stdout"):
    """The standard output of the process."""

    per_second: Pace = 100.0
    format: Literal["jsonl", "markdown"] = "jsonl"


AnySettings: TypeAlias = (
    WebhookSettings
    | SlackSettings
    | PagerDutySettings
    | GitHubSettings
    | AlertmanagerSettings
    | FileSettings
    | StdoutSettings
)
TYPES: dict[str, type[AnySettings]] = {str(each.__struct_config__.tag): each for each in get_args(AnySettings)}
"""The types of sinks by their names."""


def read_sinks(tables: Mapping[str, Any], where: str) -> tuple[AnySettings, ...]:
    """Read the tables of all sinks.

    Args:
        tables: what stands under ``[sinks]``: a table by the name of each sink.
        where: the file, for messages.

    Raises:
        InvalidSinks: a name, key or value means nothing; the message names it and the remedy.
    """
    if len(tables) > MAX_SINKS:
        raise InvalidSinks(f"{where}: there are {len(tables)} sinks; name {MAX_SINKS} at most")
    return tuple(_read(name, table, where) for name, table in tables.items())


def check_address(text: str, settings: HttpSettings, key: str, place: str) -> str:
    """Give an address to send to, or refuse it.

    Args:
        text: the address; it may be a secret, and is not quoted.
        settings: whether it may be unencrypted, and not public.
        key: where it came from, for the message.
        place: file and table, for the message.

    Raises:
        InvalidSinks: it is no address, or an unencrypted one, or is written as one that is not public.
    """
    try:
        url = urlsplit(text)
        host, _ = url.hostname, url.port
    except ValueError:
        url, host = urlsplit(""), None
    if not host or url.scheme not in {"http", "https"} or not text.isprintable() or " " in text or "\\" in text:
        raise InvalidSinks(f"{place}: `{key}` is no address; write one as https://host/path")
    if "@" in url.netloc:
        raise InvalidSinks(f"{place}: `{key}` has a user name or password in it; take them out")
    if url.scheme == "http" and not settings.allow_http and not is_loopback_name(host):
        raise InvalidSinks(
            f"{place}: `{key}` would send unencrypted; write https://, or set allow_http = true in a network you trust"
        )
    address = literal(host)
    if address is not None and not (settings.allow_private or is_public(address) or address.is_loopback):
        raise InvalidSinks(
            f"{place}: `{key}` is an address that is not public; set allow_private = true if it is meant, or write a "
            "public one"
        )
    return url._replace(fragment="").geturl()


def _read(name: str, table: Any, where: str) -> AnySettings:
    place = f"{where}: [sinks.{name}]"
    if not _NAME.fullmatch(name):
        raise InvalidSinks(
            f"{place}: no name for a sink; use up to 63 small letters, digits, - and _, the first one a letter or digit"
        )
    if not isinstance(table, dict):
        raise InvalidSinks(f"{place}: is no table; write [sinks.{name}] and its keys below it")
    known = table.get("type")
    if not isinstance(known, str) or known not in TYPES:
        raise InvalidSinks(f"{place}: `type` is missing or unknown; known are: {', '.join(TYPES)}")
    keys = {*TYPES[known].__struct_fields__, "type"} - {"name"}
    for key in table:
        if key not in keys:
            raise InvalidSinks(f"{place}: a sink of type {known} has no key `{key}`; {_remedy(key, keys)}")
    _check_kinds(table.get("kinds"), place)
    try:
        settings = msgspec.convert({**table, "name": name}, TYPES[known])
    except msgspec.ValidationError as problem:
        found = _AT.search(str(problem))
        key = f"`{found[1]}`: " if found else ""
        raise InvalidSinks(f"{place}: {key}{_AT.sub('', str(problem))}") from None
    _check(settings, place)
    return settings


def _check_kinds(kinds: object, place: str) -> None:
    """Refuse kinds that there are not; what is no list of texts is refused with the types."""
    for number, kind in enumerate(kinds if isinstance(kinds, list) else ()):
        if isinstance(kind, str) and kind not in ALL_KINDS:
            near = difflib.get_close_matches(kind, ALL_KINDS, n=1)
            remedy = f"did you mean `{near[0]}`? " if near else ""
            raise InvalidSinks(f"{place}: `kinds[{number}]` is no kind; {remedy}known are: {', '.join(ALL_KINDS)}")


def _remedy(key: str, keys: set[str]) -> str:
    """Tell those who write a secret into the file where it belongs."""
    if f"{key}_env" in keys:
        return f"it is a secret: name a variable in `{key}_env` or a file in `{key}_file`"
    return suggest(key, keys)


def _check(settings: AnySettings, place: str) -> None:
    """Check what the types do not say: that each source is named once, and addresses."""
    needed = [*settings.secrets]
    if isinstance(settings, WebhookSettings | AlertmanagerSettings):
        needed.append("url")
    for each in needed:
        ways = [way for way in (each, f"{each}_env", f"{each}_file") if way in settings.__struct_fields__]
        given = [way for way in ways if getattr(settings, way) is not None]
        optional = each == "secret" and isinstance(settings, WebhookSettings) and settings.format == "alertmanager"
        if len(given) > 1:
            raise InvalidSinks(f"{place}: {_listed(given)} exclude each other; keep one of them")
        if not given and not optional:
            raise InvalidSinks(f"{place}: lacks {_listed(ways, 'or')}; add one of them")
    if isinstance(settings, HttpSettings):
        for key in ("url", "api_url"):
            if (address := getattr(settings, key, None)) is not None:
                check_address(address, settings, key, place)


def _listed(keys: list[str], word: str = "and") -> str:
    return f" {word} ".join(f"`{key}`" for key in keys)
