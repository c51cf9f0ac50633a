#!/usr/bin/env bash
# An agent that spins: it runs the same failing test again and again, publishes each call, and stops when it is told to.
#
#   ./agent.sh [SESSION]
#
# Needs kcat and jq. TRACTION_BOOTSTRAP and TRACTION_PREFIX say where. Exit code: 0 stopped by a termination, 1 never told
# to stop.
set -euo pipefail

calls=300      # the most this agent makes
pause=0.2      # seconds between two of them
patience=30000  # milliseconds for the brokers
bootstrap=${TRACTION_BOOTSTRAP:-127.0.0.1:9092}
prefix=${TRACTION_PREFIX:-agent.}
session=${1:-kcat-$(date +%s%N)-$$}

now() { date -u +%Y-%m-%dT%H:%M:%S.%3NZ; }

# publish TOPIC: a record for each line; comes back when the brokers have them, and ends the program when they do not take
# them in time (-E: brokers may be away for a while). By default librdkafka, on which kcat stands, hashes keys otherwise
# than all others.
publish() {
    kcat -P -E -b "$bootstrap" -t "$prefix$1" -k "$session" -X topic.partitioner=murmur2_random \
        -X enable.idempotence=true -X acks=all -X message.timeout.ms="$patience"
}

# answer ITEM ACTION
answer() {
    jq -c --arg action "$2" --arg now "$(now)" '{
        event_id: "\(.acknowledge.answers)-\(.attempt // 1)-\($action)", session_id, occurred_at: $now, $action,
        answers: .acknowledge.answers, task: {id: .task_id}, actor: "kcat"
    }' <<<"$1" | publish control
}

# obey ITEM: does what is asked and answers; succeeds when the session is to stop.
obey() {
    case $(jq -r --arg session "$session" --arg now "$(now)" '
        if .session_id != $session or (.expires_at // "9") <= $now then "nothing"
        elif .termination_id then "stop" else .action end' <<<"$1") in
        nothing) return 1 ;;
        stop)
            answer "$1" obeyed
            echo "stopped: $(jq -r .reason <<<"$1")"
            ;;
        inject_guidance)
            echo "shown: $(jq -r .text <<<"$1")" # here it goes into the agent's context
            answer "$1" obeyed
            return 1
            ;;
        *)
            answer "$1" refused
            return 1
            ;;
    esac
}

# follow TOPIC: writes what is asked into the pipe, committed records only, which is librdkafka's default. What is asked of a
# session is never older than the session; a minute for clocks that disagree. kcat ends where a partition is new, or moves.
since=$((($(date +%s) - 60) * 1000))
follow() {
    trap 'kill $! 2>/dev/null; exit' TERM
    while :; do
        kcat -C -E -q -u -b "$bootstrap" -t "$prefix$1" -o "s@$since" >&3 &
        wait $! || true
        sleep 1 &
        wait $!
    done
}

room=$(mktemp -d)
followers=()
trap 'kill "${followers[@]}" 2>/dev/null || true; rm -rf "$room"' EXIT
mkfifo "$room/asked"
exec 3<>"$room/asked"
for topic in directives terminations; do
    follow "$topic" &
    followers+=($!)
done

echo "session $session"
for ((call = 1; call <= calls; call++)); do
    jq -nc --arg session "$session" --arg call "$call" --arg now "$(now)" '{
        event_id: "\($session)-\($call)", session_id: $session, occurred_at: $now, tool: "Bash",
        arguments: {command: "pytest -q tests/cart/test_totals.py"},
        result: "FAILED tests/cart/test_totals.py::test_three_for_ten - AssertionError: assert 12 == 10", status: "error"
    }' | publish tool-calls
    while read -r -t "$pause" -u 3 item; do
        obey "$item" && exit
    done
done
exit 1
