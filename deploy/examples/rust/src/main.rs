//! An agent that spins: it runs the same failing test again and again, publishes each call, and stops when it is told to.
//!
//!     cargo run -- [SESSION]
//!
//! TRACTION_BOOTSTRAP and TRACTION_PREFIX say where. Exit code: 0 stopped by a termination, 1 never told to stop.

use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::message::{DeliveryResult, Message};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};
use rdkafka::{ClientContext, Offset, TopicPartitionList};
use serde_json::{json, Value};

const CALLS: u32 = 300; // the most this agent makes
const PAUSE: Duration = Duration::from_millis(200); // between two of them
const PATIENCE: Duration = Duration::from_secs(30); // for the brokers

/// Ends the program when a record was not taken.
struct Delivered;

impl ClientContext for Delivered {}

impl ProducerContext for Delivered {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, _: ()) {
        if let Err((problem, _)) = result {
            eprintln!("not published: {problem}");
            std::process::exit(1);
        }
    }
}

struct Agent {
    prefix: String,
    session: String,
    producer: BaseProducer<Delivered>,
    consumer: BaseConsumer,
}

impl Agent {
    fn new(session: String) -> KafkaResult<Agent> {
        let mut common = ClientConfig::new();
        common.set("bootstrap.servers", setting("TRACTION_BOOTSTRAP", "127.0.0.1:9092"));
        common.set_log_level(RDKafkaLogLevel::Error);
        let producer = common
            .clone()
            .set("partitioner", "murmur2_random") // as all others; librdkafka's own default is CRC32
            .set("enable.idempotence", "true")
            .set("acks", "all")
            .set("linger.ms", "0")
            .create_with_context(Delivered)?;
        // Committed records only: librdkafka's default. The group is named since it must be, and never joined.
        let consumer = common.set("group.id", &session).set("enable.auto.commit", "false").create()?;
        Ok(Agent { prefix: setting("TRACTION_PREFIX", "agent."), session, producer, consumer })
    }

    /// Begin to read what is asked: it is never older than the session. A minute for clocks that disagree.
    fn follow(&self) -> KafkaResult<()> {
        let since = Offset::Offset(millis(SystemTime::now() - Duration::from_secs(60)));
        let mut wanted = TopicPartitionList::new();
        for name in ["directives", "terminations"] {
            let topic = format!("{}{name}", self.prefix);
            let known = self.consumer.fetch_metadata(Some(&topic), PATIENCE)?;
            for partition in known.topics().iter().flat_map(|each| each.partitions()) {
                wanted.add_partition_offset(&topic, partition.id(), since)?;
            }
        }
        let until = Instant::now() + PATIENCE;
        loop {
            match self.consumer.offsets_for_times(wanted.clone(), PATIENCE) {
                Err(problem) if Instant::now() < until => {
                    eprintln!("again in a second: {problem}"); // a partition that is new, or that moves to another broker
                    std::thread::sleep(Duration::from_secs(1));
                }
                found => return self.consumer.assign(&found?),
            }
        }
    }

    /// Work until told to stop, and say whether that was so.
    fn run(&self) -> Result<bool, Box<dyn Error>> {
        println!("session {}", self.session);
        for call in 1..=CALLS {
            self.publish("tool-calls", json!({
                "event_id": format!("{}-{call}", self.session),
                "session_id": self.session,
                "occurred_at": now(),
                "tool": "Bash",
                "arguments": {"command": "pytest -q tests/cart/test_totals.py"},
                "result": "FAILED tests/cart/test_totals.py::test_three_for_ten - AssertionError: assert 12 == 10",
                "status": "error",
            }))?;
            let until = Instant::now() + PAUSE;
            while let Some(left) = until.checked_duration_since(Instant::now()) {
                let Some(record) = self.consumer.poll(left) else { break };
                let record = match record {
                    Ok(record) => record,
                    Err(problem @ KafkaError::MessageConsumptionFatal(_)) => return Err(problem.into()),
                    Err(problem) => {
                        eprintln!("{problem}"); // brokers that are away: the client connects again by itself
                        continue;
                    }
                };
                if record.key() != Some(self.session.as_bytes()) {
                    continue;
                }
                if let Some(value) = record.payload() {
                    if self.obey(&serde_json::from_slice(value)?)? {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }

    /// Do what is asked and answer, and say whether the session is to stop.
    fn obey(&self, item: &Value) -> Result<bool, Box<dyn Error>> {
        if let Some(at) = item["expires_at"].as_str() {
            if humantime::parse_rfc3339(at)? <= SystemTime::now() {
                return Ok(false); // too late
            }
        }
        if item["termination_id"].is_string() {
            self.answer(item, "obeyed")?;
            println!("stopped: {}", item["reason"].as_str().unwrap_or_default());
            return Ok(true);
        }
        if item["action"] == "inject_guidance" {
            println!("shown: {}", item["text"].as_str().unwrap_or_default()); // here it goes into the agent's context
            self.answer(item, "obeyed")?;
        } else {
            self.answer(item, "refused")?;
        }
        Ok(false)
    }

    fn answer(&self, item: &Value, action: &str) -> KafkaResult<()> {
        let answers = item["acknowledge"]["answers"].as_str().unwrap_or_default();
        let attempt = item["attempt"].as_u64().unwrap_or(1);
        self.publish("control", json!({
            "event_id": format!("{answers}-{attempt}-{action}"),
            "session_id": self.session,
            "occurred_at": now(),
            "action": action,
            "answers": answers,
            "task": {"id": item["task_id"]},
            "actor": "rust",
        }))
    }

    /// Come back when the brokers have the record.
    fn publish(&self, name: &str, event: Value) -> KafkaResult<()> {
        let (topic, value) = (format!("{}{name}", self.prefix), event.to_string());
        let record = BaseRecord::to(&topic).key(&self.session).payload(&value);
        self.producer.send(record).map_err(|(problem, _)| problem)?;
        self.producer.flush(PATIENCE)
    }
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let own = || format!("rust-{}-{}", millis(SystemTime::now()), std::process::id());
    let agent = Agent::new(std::env::args().nth(1).unwrap_or_else(own))?;
    agent.follow()?;
    Ok(if agent.run()? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn now() -> String {
    humantime::format_rfc3339_millis(SystemTime::now()).to_string()
}

fn millis(at: SystemTime) -> i64 {
    at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

fn setting(name: &str, otherwise: &str) -> String {
    std::env::var(name).ok().filter(|value| !value.is_empty()).unwrap_or_else(|| otherwise.into())
}
