"""The sections on what is lost on the way of the dashboard of the pipeline: dead letters, and the gateway."""

from __future__ import annotations

from deploy.grafana.board import Section
from deploy.grafana.budgets import budget
from deploy.grafana.look import EACH, GREEN, ORANGE, PURPLE, RED, Query, runbook
from deploy.grafana.panels import lines, number
from deploy.grafana.queries import RECENT, grown, highest, quantile, rate, share, total
from deploy.grafana.slo import FULL_CORE, PUBLISH_SECONDS, READABLE, VERDICTS_SECONDS, WORKER


def unreadable() -> Section:
    """Make the section on dead letters."""
    return Section(
        "What cannot be read",
        [
            budget("Readable events", "events may become dead letters", READABLE, width=4, height=8),
            number(
                "Dead letters",
                "Records set aside over the time shown, by all processes. Good: 0, or a few that somebody knows of. "
                "`traction dead-letters list` names them.",
                grown("traction_dead_letters_total"),
                "short",
                base=ORANGE,
                decimals=0,
                links=[runbook("TractionDeadLetters"), runbook("TractionUnreadableElsewhere")],
                width=4,
                height=8,
            ),
            lines(
                "Dead letters, by reason",
                "Why records were set aside. Good: none. One reason alone is usually one producer; detector_error "
                "is a defect of ours; delivery_… are notifications that a sink gave up.",
                [
                    Query(
                        grown("traction_dead_letters_total", "job", "reason", window=RECENT) + " > 0",
                        "{{job}} {{reason}}",
                    )
                ],
                "short",
                bars=True,
                stacked=True,
                links=[runbook("TractionDeadLetters")],
                width=8,
            ),
            lines(
                "Share of events that are dead or late",
                f"Of the events that workers read. Good: dead ones below {READABLE.bad:.1%}, the dashed line; late "
                "ones near 0: producers' clocks, or queues before Kafka.",
                [
                    Query(
                        share(
                            rate("traction_events_total", where=f'{WORKER},result="{result}"'),
                            rate("traction_events_total", where=WORKER),
                        ),
                        result,
                    )
                    for result in ("dead", "late")
                ],
                "percentunit",
                steps=[(READABLE.bad, RED)],
                colours={"dead": RED, "late": ORANGE},
                links=[runbook("TractionDeadLetters"), runbook("TractionEventsLate")],
                width=8,
            ),
        ],
    )


def gateway() -> Section:
    """Make the section on the gateway and the bridge."""
    return Section(
        "The gateway and the bridge",
        [
            lines(
                "Requests, by status",
                "Requests answered a second. Good: nearly all 200. 429: more than it takes, 503: brokers do not "
                "acknowledge; clients come again after both. 401 and 403: tokens. 500 is a defect.",
                [Query(rate("traction_gateway_requests_total", "code"), "{{code}}")],
                "reqps",
                stacked=True,
                colours={"200": GREEN, "401": PURPLE, "403": PURPLE, "429": ORANGE, "500": RED, "503": RED},
                links=[
                    runbook("TractionGatewayErrors"),
                    runbook("TractionGatewayOverloaded"),
                    runbook("TractionGatewayUnauthorised"),
                ],
            ),
            lines(
                "Time until brokers acknowledge",
                "From handing a request's events to the Kafka client to the brokers' word. Good: half below 50 ms. "
                f"Above {PUBLISH_SECONDS:g} s it is reported: agents with hooks wait as long.",
                [
                    Query(quantile(0.5, "traction_gateway_publish_seconds"), "half"),
                    Query(quantile(0.99, "traction_gateway_publish_seconds"), "99 of 100"),
                ],
                "s",
                steps=[(PUBLISH_SECONDS, RED)],
                links=[runbook("TractionGatewaySlow")],
            ),
            lines(
                "Not acknowledged",
                "Requests whose events brokers did not acknowledge in time, and Kafka clients made anew. Good: none "
                "of either. Clients send such requests again.",
                [
                    Query(
                        grown("traction_gateway_unacknowledged_total", window=RECENT),
                        "requests not acknowledged",
                    ),
                    Query(
                        grown("traction_gateway_producer_renewals_total", window=RECENT),
                        "clients made anew",
                    ),
                ],
                "short",
                bars=True,
                colours={"requests not acknowledged": RED, "clients made anew": ORANGE},
                links=[runbook("TractionGatewayUnacknowledged"), runbook("TractionGatewayRenewing")],
            ),
            lines(
                "Events accepted and refused",
                "Events that the gateway and the bridge took or refused, a second. Good: refused near 0; senders "
                "are told why.",
                [Query(rate("traction_gateway_events_total", "result"), "{{result}}")],
                "eps",
                stacked=True,
                colours={"accepted": GREEN, "refused": RED},
                links=[runbook("TractionGatewayRefusing"), runbook("TractionInputNotRead")],
            ),
            lines(
                "Events refused, by reason",
                "Why events were refused. Good: none. One reason alone is usually one sender.",
                [
                    Query(
                        grown("traction_gateway_refused_total", "reason", window=RECENT) + " > 0",
                        "{{reason}}",
                    )
                ],
                "short",
                bars=True,
                stacked=True,
                links=[runbook("TractionGatewayRefusing")],
            ),
            lines(
                "In flight",
                "Requests without an answer yet, and megabytes that they hold. Good: a few. A level that climbs: "
                "brokers are slow, and 429 comes next.",
                [
                    Query(total("traction_gateway_in_flight_requests"), "requests"),
                    Query(f"{total('traction_gateway_in_flight_bytes')} / 1e6", "megabytes"),
                ],
                "short",
            ),
            lines(
                "Verdicts given to agents",
                "What agents were told that asked, by what it says: warnings, refused calls, stops. Good: follows "
                "the alerts.",
                [Query(rate("traction_gateway_verdicts_total", "action"), "{{action}}")],
                "cps",
                width=6,
            ),
            lines(
                "Age of what the gateway knows of verdicts",
                "How long ago a gateway last knew all directives and terminations that there were. Good: 5 s at most. "
                f"Above {VERDICTS_SECONDS:g} s agents are told too late, and it is reported.",
                [Query(highest("traction_verdicts_behind_seconds", "instance"), "{{instance}}")],
                "s",
                steps=[(VERDICTS_SECONDS, RED)],
                links=[runbook("TractionVerdictsBehind")],
                width=6,
            ),
            lines(
                "OpenTelemetry: passed over, lacking, refused",
                "Spans and log records that gave no event, events that came without something that detectors need, "
                "and what could not be read. Good: refused is 0; lacking tells what the agents' instrumentation "
                "should send.",
                [
                    Query(
                        rate("traction_otlp_passed_total", "signal", "reason") + " > 0", "passed: {{signal}} {{reason}}"
                    ),
                    Query(
                        rate("traction_otlp_lacking_total", "signal", "what") + " > 0", "lacking: {{signal}} {{what}}"
                    ),
                    Query(
                        rate("traction_otlp_refused_total", "signal", "reason") + " > 0",
                        "refused: {{signal}} {{reason}}",
                    ),
                ],
                "cps",
                links=[runbook("TractionSpansRefused")],
                width=6,
            ),
            lines(
                "Processor time",
                "Cores that each process uses: it can use one. Good: below 0.7.",
                [Query(rate("process_cpu_seconds_total", "job", "instance"), EACH)],
                "none",
                steps=[(0.7, ORANGE), (FULL_CORE, RED)],
                links=[runbook("TractionProcessorFull")],
                width=6,
            ),
        ],
    )
