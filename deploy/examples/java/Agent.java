import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * An agent that spins: it runs the same failing test again and again, publishes each call, and stops when it is told to.
 *
 * <pre>mvn -q compile dependency:build-classpath
 * java -cp target/classes:$(cat target/classpath) Agent [SESSION]</pre>
 *
 * <p>TRACTION_BOOTSTRAP and TRACTION_PREFIX say where. Exit code: 0 stopped by a termination, 1 never told to stop.
 */
public final class Agent {
    private static final int CALLS = 300; // the most this agent makes
    private static final Duration PAUSE = Duration.ofMillis(200); // between two of them
    private static final ObjectMapper JSON = new ObjectMapper();

    private final String prefix = setting("TRACTION_PREFIX", "agent.");
    private final String session;
    private final KafkaProducer<String, String> producer;
    private final KafkaConsumer<String, String> consumer;

    private Agent(String session) {
        this.session = session;
        String bootstrap = setting("TRACTION_BOOTSTRAP", "127.0.0.1:9092");
        // Keys are hashed with murmur2 as long as no other partitioner is set. The two named are the defaults.
        producer = new KafkaProducer<>(
                Map.of("bootstrap.servers", bootstrap, "acks", "all", "enable.idempotence", true),
                new StringSerializer(),
                new StringSerializer());
        // The default would also read what was never committed.
        consumer = new KafkaConsumer<>(
                Map.of("bootstrap.servers", bootstrap, "isolation.level", "read_committed", "enable.auto.commit", false),
                new StringDeserializer(),
                new StringDeserializer());
    }

    public static void main(String[] arguments) throws Exception {
        Agent agent = new Agent(arguments.length > 0 ? arguments[0] : "java-" + UUID.randomUUID());
        boolean stopped;
        try (agent.producer; agent.consumer) {
            agent.follow();
            stopped = agent.run();
        }
        System.exit(stopped ? 0 : 1);
    }

    /** Begin to read what is asked, without a group: it is never older than the session. A minute for clocks that disagree. */
    private void follow() {
        List<TopicPartition> partitions = new ArrayList<>();
        for (String name : List.of("directives", "terminations")) {
            consumer.partitionsFor(prefix + name)
                    .forEach(each -> partitions.add(new TopicPartition(each.topic(), each.partition())));
        }
        consumer.assign(partitions);
        consumer.seekToEnd(partitions);
        Map<TopicPartition, Long> since = new HashMap<>();
        partitions.forEach(each -> since.put(each, System.currentTimeMillis() - 60_000));
        consumer.offsetsForTimes(since).forEach((partition, found) -> {
            if (found != null) {
                consumer.seek(partition, found.offset());
            } else {
                consumer.position(partition); // the end is looked up now, not when it is first read
            }
        });
    }

    /** Work until told to stop, and say whether that was so. */
    private boolean run() throws Exception {
        System.out.println("session " + session);
        for (int call = 1; call <= CALLS; call++) {
            publish("tool-calls", Map.of(
                    "event_id", session + "-" + call,
                    "session_id", session,
                    "occurred_at", Instant.now().toString(),
                    "tool", "Bash",
                    "arguments", Map.of("command", "pytest -q tests/cart/test_totals.py"),
                    "result", "FAILED tests/cart/test_totals.py::test_three_for_ten - AssertionError: assert 12 == 10",
                    "status", "error"));
            long until = System.nanoTime() + PAUSE.toNanos();
            for (long left = PAUSE.toNanos(); left > 0; left = until - System.nanoTime()) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofNanos(left))) {
                    if (session.equals(record.key()) && obey(JSON.readTree(record.value()))) {
                        return true;
                    }
                }
            }
        }
        return false;
    }

    /** Do what is asked and answer, and say whether the session is to stop. */
    private boolean obey(JsonNode item) throws Exception {
        if (item.hasNonNull("expires_at")
                && !OffsetDateTime.parse(item.get("expires_at").asText()).toInstant().isAfter(Instant.now())) {
            return false; // too late
        }
        if (item.has("termination_id")) {
            answer(item, "obeyed");
            System.out.println("stopped: " + item.get("reason").asText());
            return true;
        }
        if (item.get("action").asText().equals("inject_guidance")) {
            System.out.println("shown: " + item.get("text").asText()); // here it goes into the agent's context
            answer(item, "obeyed");
        } else {
            answer(item, "refused");
        }
        return false;
    }

    private void answer(JsonNode item, String action) throws Exception {
        String answers = item.get("acknowledge").get("answers").asText();
        publish("control", Map.of(
                "event_id", answers + "-" + item.path("attempt").asInt(1) + "-" + action,
                "session_id", session,
                "occurred_at", Instant.now().toString(),
                "action", action,
                "answers", answers,
                "task", Map.of("id", item.get("task_id").asText()),
                "actor", "java"));
    }

    /** Come back when the brokers have the record. */
    private void publish(String name, Map<String, Object> event) throws Exception {
        producer.send(new ProducerRecord<>(prefix + name, session, JSON.writeValueAsString(event))).get();
    }

    private static String setting(String name, String otherwise) {
        String value = System.getenv(name);
        return value == null || value.isEmpty() ? otherwise : value;
    }
}
