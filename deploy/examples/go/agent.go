// An agent that spins: it runs the same failing test again and again, publishes each call, and stops when it is told to.
//
//	go run . [SESSION]
//
// TRACTION_BOOTSTRAP and TRACTION_PREFIX say where. Exit code: 0 stopped by a termination, 1 never told to stop.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	calls    = 300                    // the most this agent makes
	pause    = 200 * time.Millisecond // between two of them
	patience = 30 * time.Second       // for the brokers
)

// item is what a directive and a termination have in common, as far as it is needed here.
type item struct {
	TerminationID string     `json:"termination_id"`
	Action        string     `json:"action"`
	TaskID        string     `json:"task_id"`
	Text          string     `json:"text"`
	Reason        string     `json:"reason"`
	Attempt       *int       `json:"attempt"`
	ExpiresAt     *time.Time `json:"expires_at"`
	Acknowledge   struct {
		Answers string `json:"answers"`
	} `json:"acknowledge"`
}

type agent struct {
	client  *kgo.Client
	prefix  string
	session string
}

func main() {
	log.SetFlags(0)
	started := time.Now()
	self := agent{
		prefix:  setting("TRACTION_PREFIX", "agent."),
		session: fmt.Sprintf("go-%d-%d", started.UnixNano(), os.Getpid()),
	}
	if len(os.Args) > 1 {
		self.session = os.Args[1]
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(setting("TRACTION_BOOTSTRAP", "127.0.0.1:9092"), ",")...),
		// All three are franz-go's defaults, said here since they matter; so is that writing is idempotent.
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)), // murmur2, as Java's
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerLinger(0),
		// These two are not.
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		// What is asked of a session is never older than the session. A minute for clocks that disagree.
		kgo.ConsumeResetOffset(kgo.NewOffset().AfterMilli(started.Add(-time.Minute).UnixMilli())),
		kgo.ConsumeTopics(self.prefix+"directives", self.prefix+"terminations"),
	)
	must(err)
	self.client = client
	stopped := self.run()
	client.Close()
	if !stopped {
		log.Fatal("nobody told this agent to stop")
	}
}

// run works until the agent is told to stop, and says whether it was.
func (self *agent) run() bool {
	fmt.Printf("session %s\n", self.session)
	for call := 1; call <= calls; call++ {
		self.publish("tool-calls", map[string]any{
			"event_id":    fmt.Sprintf("%s-%d", self.session, call),
			"session_id":  self.session,
			"occurred_at": now(),
			"tool":        "Bash",
			"arguments":   map[string]any{"command": "pytest -q tests/cart/test_totals.py"},
			"result":      "FAILED tests/cart/test_totals.py::test_three_for_ten - AssertionError: assert 12 == 10",
			"status":      "error",
		})
		if self.listen() {
			return true
		}
	}
	return false
}

// listen takes what is asked of the session within the pause, and says whether it is to stop.
func (self *agent) listen() bool {
	until, cancel := context.WithTimeout(context.Background(), pause)
	defer cancel()
	stop := false
	for until.Err() == nil && !stop {
		fetches := self.client.PollFetches(until)
		for _, failed := range fetches.Errors() {
			if until.Err() == nil {
				must(failed.Err)
			}
		}
		fetches.EachRecord(func(record *kgo.Record) {
			if string(record.Key) == self.session && record.Value != nil {
				var asked item
				must(json.Unmarshal(record.Value, &asked))
				stop = self.obey(asked) || stop
			}
		})
	}
	return stop
}

// obey does what is asked and answers, and says whether the session is to stop.
func (self *agent) obey(asked item) bool {
	switch {
	case asked.ExpiresAt != nil && !asked.ExpiresAt.After(time.Now()): // too late
	case asked.TerminationID != "":
		self.answer(asked, "obeyed")
		fmt.Printf("stopped: %s\n", asked.Reason)
		return true
	case asked.Action == "inject_guidance":
		fmt.Printf("shown: %s\n", asked.Text) // here it goes into the agent's context
		self.answer(asked, "obeyed")
	default:
		self.answer(asked, "refused")
	}
	return false
}

func (self *agent) answer(asked item, action string) {
	attempt := 1
	if asked.Attempt != nil {
		attempt = *asked.Attempt
	}
	self.publish("control", map[string]any{
		"event_id":    fmt.Sprintf("%s-%d-%s", asked.Acknowledge.Answers, attempt, action),
		"session_id":  self.session,
		"occurred_at": now(),
		"action":      action,
		"answers":     asked.Acknowledge.Answers,
		"task":        map[string]any{"id": asked.TaskID},
		"actor":       "go",
	})
}

// publish comes back when the brokers have the record; the program ends when they do not take it in time.
func (self *agent) publish(name string, event map[string]any) {
	value, err := json.Marshal(event)
	must(err)
	record := &kgo.Record{Topic: self.prefix + name, Key: []byte(self.session), Value: value}
	until, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := self.client.ProduceSync(until, record).FirstErr(); err != nil {
		log.Fatalf("not published within %s: %v", patience, err)
	}
}

func now() string { return time.Now().UTC().Format(time.RFC3339Nano) }

func setting(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
