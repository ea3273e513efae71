package cli

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

func TestPipe(t *testing.T) {
	b := newBench(t)
	write(t, "ping.yml", "steps: [{expect: {ping: 1}, reply: {}}]")
	write(t, "wrong.yml", "steps: [{expects: {ping: 1}}]")
	for _, r := range []struct {
		reason, args string
		code         int
		says         string
	}{
		{"no script", "", ExitUsage, "requires a script"},
		{"the script is not there", "nowhere.yml", ExitUsage, "nowhere.yml"},
		{"the script is wrong", "wrong.yml", ExitUsage, `wrong.yml:1:10: a step has no key "expects"`},
		{"the application fails, and sends nothing", "ping.yml -- sh -c 'echo to $MONGODB_URI; exit 7'", ExitFailed,
			`to mongodb://127.0.0.1: … utr: ping.yml:1:18: {"ping":1} did not come, after 0 messages … sh: exit status 7`},
		{"it sends nothing, and is content", "ping.yml -- true", ExitFailed, "did not come"},
		{"it leaves a child with its output", "ping.yml -- sh -c 'sleep 60 & echo ended'", ExitFailed, "ended … did not come"},
		{"it does not end", "--timeout 50ms ping.yml -- sleep 60", ExitFailed, "sleep has not ended within 50ms"},
		{"nobody comes", "--timeout 50ms ping.yml", ExitFailed, "did not come"},
		{"the application is not there", "ping.yml -- ./nothing", ExitFailed, "nothing"},
	} {
		b.expect(t, r.reason, "pipe "+r.args, r.code, r.says)
	}
	b.ctx = ended(t.Context())
	b.expect(t, "interrupted", "pipe ping.yml -- sleep 60", ExitBroken, "interrupted")
}

// Without a command somebody else connects.
func TestPipeWaits(t *testing.T) {
	b := newBench(t)
	write(t, "ping.yml", "steps: [{expect: {ping: 1}, reply: {}}]")
	out, in := io.Pipe()
	b.Stdout = in
	code := make(chan int, 1)
	go func() { code <- b.Main(context.Background(), []string{"pipe", "ping.yml"}) }()
	uri := make([]byte, 100)
	n, err := out.Read(uri)
	testkit.Check(t, err)
	client, err := mongo.Connect(options.Client().ApplyURI(strings.TrimSpace(string(uri[:n]))))
	testkit.Check(t, err)
	testkit.Check(t, client.Database("admin").RunCommand(testkit.Context(t), bson.D{{Key: "ping", Value: 1}}).Err())
	testkit.Equal(t, "the exit code", testkit.Receive(t, "the command ends", code), 0)
	testkit.Equal(t, "what came", b.err.String(), "ping.yml:1:18: ping: reply\n")
	testkit.Check(t, client.Disconnect(t.Context()))
}
