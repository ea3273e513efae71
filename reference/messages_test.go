package reference

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/result"
)

// logsOf performs operations on a client with observeLogMessages, closes it, and returns its messages.
func logsOf(t *testing.T, observed, options string, ops ...string) (messages []result.LogMessage) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := script(t, "single", 1)
		s.on("saslContinue", fails(18))
		b := open(t, s.uri(options), Options{dial: s.dial}, d("observeLogMessages", parsed(t, observed)))
		for _, op := range ops {
			b.perform(op)
		}
		testkit.Check(t, b.Close(t.Context(), "client"))
		var err error
		messages, err = b.Test.Logs(t.Context(), "client")
		testkit.Check(t, err)
	})
	for i, m := range messages {
		testkit.Equal(t, "the number of a message", m.Sequence, int64(i+1))
	}
	return messages
}

// only returns the messages with a text, and about a command if it is not "".
func only(messages []result.LogMessage, command, text string) []result.LogMessage {
	return slices.DeleteFunc(slices.Clone(messages), func(m result.LogMessage) bool {
		name, _ := m.Data.Lookup("commandName").StringValueOK()
		return command != "" && name != command || m.Data.Lookup("message").StringValue() != text
	})
}

func TestLogMessages(t *testing.T) {
	testkit.PlayStories(t, "testdata/logs.txt", func(t *testing.T, s testkit.Story) string {
		transcript, _, _ := strings.Cut(s.Text, "    ")
		observe, options, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(transcript, "observe ")), "\nclient ")
		for _, m := range logsOf(t, observe, options, "insert") {
			transcript += "    " + m.Component + " " + m.Level + ": " + m.Data.Lookup("message").StringValue()
			if name, ok := m.Data.Lookup("commandName").StringValueOK(); ok {
				transcript += " (" + name + ")"
			}
			transcript += "\n"
		}
		return transcript
	})
}

func TestLogData(t *testing.T) {
	messages := logsOf(t, `{"command":"trace","connection":"trace","topology":"trace","serverSelection":"trace"}`,
		"maxPoolSize=7&waitQueueTimeoutMS=9000", "insert",
		`database.runCommand {"commandName":"saslContinue","command":{"saslContinue":1,"conversationId":0,"payload":"secret"}}`)
	started := only(messages, "insert", "Command started")[0].Data
	for _, c := range []struct {
		why, command, message, key string
		want                       any // nil: absent
	}{
		{"an option that is set", "", "Connection pool created", "maxPoolSize", int64(7)},
		{"an option that the Go driver does not have", "", "Connection pool created", "waitQueueTimeoutMS", int64(9000)},
		{"an option that is not set", "", "Connection pool created", "minPoolSize", nil},
		{"host without port", "insert", "Command started", "serverHost", "s0"},
		{"no service without a load balancer", "insert", "Command started", "serviceId", nil},
		{"no service of a pool without a load balancer", "", "Connection pool ready", "serviceId", nil},
		{"the operation of a selection is the command", "", "Server selection started", "operation", "insert"},
		{"selection and command have the same operationId", "", "Server selection started", "operationId",
			started.Lookup("operationId").Int64()},
		{"the server of a heartbeat", "", "Server heartbeat succeeded", "serverHost", "s0"},
		{"a sensitive command is redacted", "saslContinue", "Command started", "command", "{}"},
		{"the failure of a sensitive command is redacted", "saslContinue", "Command failed", "failure", ""},
	} {
		found := only(messages, c.command, c.message)[0]
		var got any
		if v := found.Data.Lookup(c.key); v.Type != 0 {
			testkit.Check(t, v.Unmarshal(&got))
		}
		testkit.Equal(t, c.why, got, c.want)
		if c.key == "failure" && (found.FailureRedacted == nil || !*found.FailureRedacted) {
			t.Error("the failure is not marked as redacted")
		}
	}
	if text := started.Lookup("command").StringValue(); !strings.HasPrefix(text, `{"insert":"coll"`) {
		t.Errorf("the command is %s", text)
	}
}

// Each attempt of a read has its own messages: a command that started, and one that failed or succeeded.
func TestLogOfRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := script(t, "replicaset", 1)
		s.on("find", fails(91))
		b := open(t, s.uri(), Options{dial: s.dial}, d("observeLogMessages", parsed(t, `{"command":"debug"}`)))
		b.perform("find")
		messages, err := b.Test.Logs(t.Context(), "client")
		testkit.Check(t, err)
		var got []string
		ids := map[any]bool{}
		for _, m := range messages {
			got = append(got, m.Data.Lookup("message").StringValue())
			ids[m.Data.Lookup("requestId").AsInt64()] = true
		}
		testkit.Equal(t, "messages", got, []string{"Command started", "Command failed", "Command started", "Command succeeded"})
		testkit.Equal(t, "requestIds", len(ids), 2)
		testkit.Check(t, b.Close(t.Context(), "client"))
	})
}

func TestObserveLogMessages(t *testing.T) {
	for _, c := range []struct {
		why, value string
		wrong      bool
	}{
		{"nothing is observed", `{}`, false},
		{"every level", `{"v":{"command":"emergency","connection":"trace"}}`, false},
		{"off is not a level of the format", `{"v":{"command":"off"}}`, true},
		{"not a document", `{"v":"debug"}`, true},
		{"unknown component", `{"v":{"commands":"debug"}}`, true},
		{"unknown level", `{"v":{"command":"verbose"}}`, true},
		{"level of another type", `{"v":{"command":7}}`, true},
	} {
		if _, err := newMessageLog(time.Now,
			raw(t, append(bson.D{}, parsed(t, c.value)...)).Lookup("v")); (err != nil) != c.wrong {
			t.Errorf("%s: error %v", c.why, err)
		}
	}
	var none *messageLog
	none.add(componentCommand, "error", nil, nil)
	if len(none.all()) != 0 || none.observes(componentCommand, "emergency") {
		t.Error("a log that observes nothing has messages")
	}
}
