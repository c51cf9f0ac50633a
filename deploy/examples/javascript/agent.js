// An agent that spins: it runs the same failing test again and again, publishes each call, and stops when it is told to.
//
//   npm ci && node agent.js [SESSION]
//
// TRACTION_BOOTSTRAP and TRACTION_PREFIX say where. Exit code: 0 stopped by a termination, 1 never told to stop.
import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { Consumer, FetchIsolationLevels, Producer, ProduceAcks, stringDeserializers, stringSerializers } from "@platformatic/kafka";

const CALLS = 300; // the most this agent makes
const PAUSE_MS = 200; // between two of them

const prefix = process.env.TRACTION_PREFIX ?? "agent.";
const session = process.argv[2] ?? `javascript-${randomUUID()}`;
const client = {
  clientId: "traction-example",
  bootstrapBrokers: (process.env.TRACTION_BOOTSTRAP ?? "127.0.0.1:9092").split(","),
  retries: 30, // brokers may be away for half a minute; the default is three seconds
  retryDelay: 1000, // ms
};
const asked = [`${prefix}directives`, `${prefix}terminations`];

// Keys are hashed with murmur2 where no other partitioner is named.
const producer = new Producer({
  ...client, serializers: stringSerializers, idempotent: true, acks: ProduceAcks.ALL, maxInflights: 1,
});

// This client reads in groups only: one for each session, which commits nothing and so leaves nothing.
const consumer = new Consumer({
  ...client,
  retries: 3, // what follows goes on by itself
  groupId: `${session}-verdicts`,
  deserializers: stringDeserializers,
  autocommit: false,
  isolationLevel: FetchIsolationLevels.READ_COMMITTED,
});

const publish = (name, record) =>
  producer.send({ messages: [{ topic: `${prefix}${name}`, key: session, value: JSON.stringify(record) }] });

function answer(item, action) {
  const { answers } = item.acknowledge;
  return publish("control", {
    event_id: `${answers}-${item.attempt ?? 1}-${action}`,
    session_id: session,
    occurred_at: new Date().toISOString(),
    action,
    answers,
    task: { id: item.task_id },
    actor: "javascript",
  });
}

let stopped = false; // by a termination
let ended = false;

async function obey(item) {
  if (item.expires_at && Date.parse(item.expires_at) <= Date.now()) return; // too late
  if (item.termination_id) {
    stopped = true;
    await answer(item, "obeyed");
    console.log(`stopped: ${item.reason}`);
  } else if (item.action === "inject_guidance") {
    console.log(`shown: ${item.text}`); // here it goes into the agent's context
    await answer(item, "obeyed");
  } else {
    await answer(item, "refused");
  }
}

// From here on: what is asked of a session is never older than the session. A minute for clocks that disagree.
const since = BigInt(Date.now() - 60_000);
const ends = await consumer.listOffsets({ topics: asked });
const found = await consumer.listOffsetsWithTimestamps({ topics: asked, timestamp: since });
const offsets = asked.flatMap((topic) =>
  ends.get(topic).map((end, partition) => {
    const first = found.get(topic)?.get(partition)?.offset;
    return { topic, partition, offset: first === undefined || first < 0n ? end : first };
  }),
);

// This client cannot read a broker's answer that a partition's leader has changed ("Out of bounds"), and asks the same
// again. So a stream that fails is made anew: one that is new does not say which leader it knows.
async function read() {
  while (!ended) {
    try {
      const stream = await consumer.consume({ topics: asked, mode: "manual", offsets });
      for await (const { topic, partition, offset, key, value } of stream) {
        offsets.find((each) => each.topic === topic && each.partition === partition).offset = offset + 1n;
        if (key === session) await obey(JSON.parse(value));
      }
    } catch (problem) {
      if (ended) return;
      console.error(`cannot read, and goes on: ${problem.message}`);
      consumer.clearMetadata();
      await pause(client.retryDelay);
    }
  }
}
const reading = read();

console.log(`session ${session}`);
for (let call = 1; call <= CALLS && !stopped; call++) {
  await publish("tool-calls", {
    event_id: `${session}-${call}`,
    session_id: session,
    occurred_at: new Date().toISOString(),
    tool: "Bash",
    arguments: { command: "pytest -q tests/cart/test_totals.py" },
    result: "FAILED tests/cart/test_totals.py::test_three_for_ten - AssertionError: assert 12 == 10",
    status: "error",
  });
  await pause(PAUSE_MS);
}
ended = true;
await consumer.close(true); // with its stream
await Promise.all([reading, producer.close()]);
process.exitCode = stopped ? 0 : 1;
