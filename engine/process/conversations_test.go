package process_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/deployment/direct"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/driver"
	"github.com/unified-test-runner/utr/engine/process"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/result"
)

// The conversations in testdata were recorded between utr and an adapter of the Go driver,
// on an embedded replica set: "->" marks messages of utr and "<-" those of the adapter.
// TestAdapterSide sends the former and expects the latter, which UTR_UPDATE=1 updates.
// TestRunnerSide sends the latter and expects the former.
const conversations = "testdata/*.txt"

// varying lists values that differ between runs, and their replacements.
var varying = []struct {
	what *regexp.Regexp
	text string
}{
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "127.0.0.1:27017"},
	{regexp.MustCompile(`\[-\d+\]`), "[-1]"}, // in the driver's ids of connections
	{regexp.MustCompile(`connection\([^)]*\) [^"]*: context canceled`), "context canceled"},
	{regexp.MustCompile(`"time":[\d.]+`), `"time":1764000000000`},
	{regexp.MustCompile(`"durationMS":[\d.]+`), `"durationMS":0.25`},
	{regexp.MustCompile(`"requestId":\d+`), `"requestId":1`},
	{regexp.MustCompile(`"serverConnectionId":\d+`), `"serverConnectionId":1`},
	{regexp.MustCompile(`"base64":"[\w+/]{22}==","subType":"04"`), `"base64":"AAAAAAAAAAAAAAAAAAAAAA==","subType":"04"`},
	{regexp.MustCompile(`\{"t":\d+,"i":\d+\}`), `{"t":1764000000,"i":1}`},
}

func normalized(line string) string {
	for _, v := range varying {
		line = v.what.ReplaceAllLiteralString(line, v.text)
	}
	return sdamFirst(line)
}

var (
	sequence = regexp.MustCompile(`^\{"sequence":\d+,`)
	sdam     = regexp.MustCompile(`^\{"sequence":\d+,"type":"(?:topology|server)`)
)

// sdamFirst moves the SDAM events of a reply before its other events and leaves the sequence numbers in their places.
// The Go driver publishes SDAM and pool events from different goroutines, so poolReadyEvent can follow the first
// heartbeat.
func sdamFirst(line string) string {
	head, rest, _ := strings.Cut(line, `"events":`)
	decoder := json.NewDecoder(strings.NewReader(rest))
	var events []json.RawMessage
	if decoder.Decode(&events) != nil {
		return line
	}
	var first, others []string
	for _, e := range events {
		if text := sequence.ReplaceAllString(string(e), ""); sdam.Match(e) {
			first = append(first, text)
		} else {
			others = append(others, text)
		}
	}
	texts := append(first, others...)
	for i, e := range events {
		texts[i] = string(sequence.Find(e)) + texts[i]
	}
	return head + `"events":[` + strings.Join(texts, ",") + "]" + rest[decoder.InputOffset():]
}

// brief is an engine with a short description.
type brief struct{ engine.Engine }

func (brief) Describe(context.Context) (engine.Description, error) {
	return engine.Description{Name: "Go driver", Version: "2.0", SchemaVersion: "1.28",
		Operations: []string{"collection.find", "collection.insertOne", "session.withTransaction"},
		Features:   []string{engine.FeatureLogging}}, nil
}

// peer is the runner side of an adapter.
type peer struct {
	in  io.WriteCloser
	out *bufio.Scanner
	end chan error
}

// serveTo serves an engine.
func serveTo(t *testing.T, e engine.Engine) *peer {
	requests, in := io.Pipe()
	out, replies := io.Pipe()
	p := &peer{in: in, out: bufio.NewScanner(out), end: make(chan error, 1)}
	p.out.Buffer(nil, 1<<20)
	go func() {
		p.end <- process.Serve(context.Background(), e, requests, replies)
		_ = replies.Close()
	}()
	t.Cleanup(func() {
		_ = in.Close()
		for p.out.Scan() { // unexpected replies
			t.Errorf("after the conversation: %s", p.out.Text())
		}
		testkit.Check(t, testkit.Receive(t, "the adapter ends", p.end))
	})
	return p
}

func (p *peer) send(t *testing.T, line string) {
	_, err := io.WriteString(p.in, line+"\n")
	testkit.Check(t, err)
}

func (p *peer) receive(t *testing.T) string {
	line := make(chan string, 1)
	go func() {
		p.out.Scan()
		line <- p.out.Text()
	}()
	return testkit.Receive(t, "a message of the adapter", line)
}

// TestAdapterSide plays the part of utr.
func TestAdapterSide(t *testing.T) {
	uri := regexp.MustCompile(`"uri":"[^"]*"`)
	testkit.PlayStories(t, conversations, func(t *testing.T, s testkit.Story) string {
		d, err := embedded.Start(testkit.Context(t),
			embedded.Options{Topology: embedded.ReplicaSet, Members: 1, Version: "4.2"})
		testkit.Check(t, err)
		t.Cleanup(func() { testkit.Check(t, d.Close()) })
		e := driver.New()
		t.Cleanup(func() { testkit.Check(t, e.Close()) })
		p := serveTo(t, brief{e})
		var story strings.Builder
		for line := range strings.Lines(s.Text) {
			if request, sent := strings.CutPrefix(strings.TrimSpace(line), process.FromRunner+" "); sent {
				if strings.Contains(request, `"method":"cancel"`) { // the driver publishes the event before it sends the command
					testkit.Until(t, "the server runs the find", func() bool {
						reply, err := direct.Run(testkit.Context(t), d.Hosts()[0], nil, "admin", bson.D{{Key: "currentOp", Value: 1}})
						testkit.Check(t, err)
						return strings.Contains(reply.String(), `"find": "books"`)
					})
				}
				p.send(t, uri.ReplaceAllLiteralString(request, `"uri":"`+d.URI()+`"`))
				story.WriteString(line)
			} else {
				story.WriteString(process.FromAdapter + " " + normalized(p.receive(t)) + "\n")
			}
		}
		return story.String()
	})
}

// hurried is an engine whose withTransaction runs its callback after its deadline.
type (
	hurried     struct{ engine.Engine }
	hurriedTest struct{ engine.Test }
)

func (hurried) Begin(context.Context) (engine.Test, error) { return hurriedTest{}, nil }
func (hurriedTest) End(context.Context) error              { return nil }

func (hurriedTest) Do(ctx context.Context, op engine.Operation) result.Outcome {
	late, cancel := context.WithDeadline(ctx, time.Now())
	defer cancel()
	return result.Outcome{Err: op.Callback(late)}
}

// A callback ends with its own error even after the deadline of withTransaction.
func TestCallbackIsLate(t *testing.T) {
	p := serveTo(t, hurried{})
	p.send(t, `{"jsonrpc":"2.0","id":1,"method":"begin","params":{}}`)
	p.receive(t)
	p.send(t, `{"jsonrpc":"2.0","id":2,"method":"do","params":{"object":"session","name":"withTransaction","arguments":{},"callback":true}}`)
	testkit.Equal(t, "the request of the adapter", p.receive(t),
		`{"jsonrpc":"2.0","id":1,"method":"callback","params":{"do":2}}`)
	p.send(t, `{"jsonrpc":"2.0","id":1,"result":{"error":{"message":"mine","client":true,"timeout":true}}}`)
	testkit.Equal(t, "the result of withTransaction",
		strings.Contains(p.receive(t), `"error":{"message":"mine","client":true,"timeout":true}`), true)
}

// TestRunnerSide plays the part of an adapter. The engine of the runner side is itself
// served by Serve, so every message passes through both sides, which must not change it.
func TestRunnerSide(t *testing.T) {
	for _, s := range testkit.Stories(t, conversations) {
		t.Run(s.File, func(t *testing.T) {
			t.Parallel()
			lines := strings.Split(strings.TrimSpace(s.Text), "\n")
			address, received := playAdapter(t, lines)
			e, err := process.New(process.Options{Address: address, Runner: "utr 1.0"})
			testkit.Check(t, err)
			t.Cleanup(func() { testkit.Check(t, e.Close()) })
			p := serveTo(t, e)
			for _, line := range lines {
				if request, sent := strings.CutPrefix(line, process.FromRunner+" "); sent {
					p.send(t, request)
					testkit.Equal(t, "utr sends", process.FromRunner+" "+testkit.Receive(t, line, received), line)
				} else {
					testkit.Equal(t, "utr understands", process.FromAdapter+" "+p.receive(t), line)
				}
			}
		})
	}
}

// playAdapter listens, sends the lines of an adapter and returns those that it receives.
func playAdapter(t *testing.T, lines []string) (address string, received <-chan string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Check(t, err)
	got := make(chan string, len(lines))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(got)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		requests := bufio.NewScanner(conn)
		for _, line := range lines {
			if reply, sent := strings.CutPrefix(line, process.FromAdapter+" "); sent {
				_, err = io.WriteString(conn, reply+"\n")
			} else if requests.Scan() {
				got <- requests.Text()
			}
			if err != nil {
				return
			}
		}
		requests.Scan() // until utr closes the connection
	}()
	t.Cleanup(func() {
		_ = l.Close()
		testkit.Receive(t, "the adapter ends", ended)
	})
	return l.Addr().String(), got
}

// Conversations conform to the schema.
func TestConversationsConform(t *testing.T) {
	for _, s := range testkit.Stories(t, conversations) {
		c, err := process.NewConformity()
		testkit.Check(t, err)
		for line := range strings.Lines(s.Text) {
			from, message, _ := strings.Cut(strings.TrimSpace(line), " ")
			if err := c.Check(from, message); err != nil {
				t.Errorf("%s: %v", s.File, err)
			}
		}
	}
}
