package reference

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/address"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	mongo "go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/mnet"
)

// packet writes a message of an operation code, whose document follows head.
func packet(t testing.TB, opcode uint32, head []byte, doc bson.D) []byte {
	out := slices.Concat(make([]byte, 16), head, raw(t, doc))
	binary.LittleEndian.PutUint32(out, uint32(len(out)))
	binary.LittleEndian.PutUint32(out[12:], opcode)
	return out
}

const query, msg = 2004, 2013

func queryHead(name string) []byte {
	return append(append(make([]byte, 4), name...), 0, 0, 0, 0, 0, 1, 0, 0, 0)
}

// TestWithBackpressure: the field is replaced, or left out, where a driver asks for
// it in a handshake; all other messages stay as they are.
func TestWithBackpressure(t *testing.T) {
	of := func(opcode uint32, head []byte, name string) func(...any) []byte {
		return func(more ...any) []byte { return packet(t, opcode, head, d(append([]any{name, 1}, more...)...)) }
	}
	plain := make([]byte, 5)
	whole := of(msg, plain, "hello")
	for _, row := range []struct {
		reason  string
		message func(more ...any) []byte
		changed bool
	}{
		{"hello as OP_MSG", whole, true},
		{"legacy hello as OP_MSG", of(msg, plain, "isMaster"), true},
		{"legacy hello as OP_QUERY", of(query, queryHead("admin.$cmd"), "isMaster"), true},
		{"a hello of the user's", func(...any) []byte { return whole() }, false},
		{"another command", of(msg, plain, "ping"), false},
		{"another opcode", of(2012, plain, "hello"), false},
		{"truncated", func(more ...any) []byte { m := whole(more...); return m[:len(m)-3] }, false},
		{"nothing", func(...any) []byte { return nil }, false},
	} {
		given := row.message("backpressure", "2", "client", "c")
		for value, want := range map[any][]byte{true: row.message("client", "c", "backpressure", true),
			"2": row.message("client", "c", "backpressure", "2"), nil: row.message("client", "c")} {
			if !row.changed {
				want = given
			}
			testkit.Equal(t, fmt.Sprint(row.reason, ", ", value), string(withBackpressure(given, value)), string(want))
		}
	}
}

func FuzzWithBackpressure(f *testing.F) {
	f.Add(packet(f, msg, make([]byte, 5), d("hello", 1, "backpressure", true)))
	f.Add(packet(f, query, queryHead("admin.$cmd"), d("isMaster", 1, "backpressure", "2")))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, message []byte) {
		kept := string(message)
		got := withBackpressure(message, "2")
		if string(message) != kept || string(withBackpressure(got, "2")) != string(got) {
			t.Error("the caller's bytes were changed, or it is added twice")
		}
	})
}

type answers struct{ err error }

func (a answers) GetHandshakeInformation(context.Context, address.Address, *mnet.Connection) (mongo.HandshakeInformation, error) {
	return mongo.HandshakeInformation{}, a.err
}

func (answers) FinishHandshake(context.Context, *mnet.Connection) error { return nil }

// TestAnsweredHandshakes: an error reply says that the server was there to
// answer; the topology must not call it overloaded.
func TestAnsweredHandshakes(t *testing.T) {
	for _, row := range []struct {
		reason   string
		err      error
		told     int
		answered bool
	}{
		{"an error reply", mongo.Error{Code: 91, Message: "no"}, 1, true},
		{"a network error", mongo.Error{Message: "no", Labels: []string{mongo.NetworkError}, Wrapped: net.ErrClosed}, 1, false},
		{"a timeout", context.DeadlineExceeded, 1, false},
		{"a success is not told", nil, 0, false},
	} {
		told := 0
		_, err := handshaker{answers{row.err}, func(string) { told++ }}.GetHandshakeInformation(t.Context(), "", nil)
		var op *net.OpError
		if errors.As(err, &op) != row.answered || told != row.told || fmt.Sprint(err) != fmt.Sprint(row.err) ||
			row.answered && (op.Op != "remote error" || innermostCommand(err) == nil) {
			t.Errorf("%s: %#v, told %d times", row.reason, err, told)
		}
	}
}

// driverInfo reads NAME/VERSION/PLATFORM.
func driverInfo(text string) options.DriverInfo {
	parts := strings.Split(text, "/")
	return options.DriverInfo{Name: parts[0], Version: parts[1], Platform: parts[2]}
}

func TestMetadataIsAppended(t *testing.T) {
	testkit.Retell(t, "testdata/metadata.txt", func(t *testing.T, s testkit.Story) (told string) {
		var m metadata
		for line := range strings.Lines(s.Text) {
			given, ok := strings.CutPrefix(line, "> ")
			if !ok {
				continue
			}
			told += line
			if before := m.current.Load(); m.append(driverInfo(strings.TrimSpace(given))) != nil {
				testkit.Equal(t, "what is refused leaves", m.current.Load(), before)
				return told + "    refused\n"
			}
		}
		all := m.current.Load()
		return told + "    " + all.Name + "/" + all.Version + "/" + all.Platform + "\n"
	})
}

// TestMetadataAtOnce is for the race detector, and loses no name.
func TestMetadataAtOnce(t *testing.T) {
	var m metadata
	var wait sync.WaitGroup
	for _, name := range []string{"a", "b", "c", "a", "b", "c"} {
		wait.Go(func() { testkit.Check(t, m.append(options.DriverInfo{Name: name})) })
	}
	wait.Wait()
	parts := strings.Split(m.current.Load().Name, delimiter)
	slices.Sort(parts)
	testkit.Equal(t, "the names", parts, []string{"a", "b", "c"})
}

// TestMetadataInHandshakes appends to a client without monitors, so that every
// connection is one of its pool.
func TestMetadataInHandshakes(t *testing.T) {
	s := script(t, "load-balanced", 1)
	b := open(t, s.uri("appname=app"), Options{dial: s.dial}, nil)
	// told is what the newest of so many connections said of the driver, and beside that.
	told := func(connections int) (driver [3]string, others string) {
		b.perform("ping")
		s.mu.Lock()
		defer s.mu.Unlock()
		testkit.Equal(t, "connections, and so hellos", len(s.first), connections)
		var all bson.D
		client := s.first[len(s.first)-1].Lookup("client").Document()
		testkit.Check(t, bson.Unmarshal(client, &all))
		all = slices.DeleteFunc(all, func(e bson.E) bool { return e.Key == "driver" || e.Key == "platform" })
		return [...]string{client.Lookup("driver", "name").StringValue(), client.Lookup("driver", "version").StringValue(),
			client.Lookup("platform").StringValue()}, raw(t, all).String()
	}
	first, others := told(1)
	for i, row := range []struct{ give, name, version, platform string }{
		{"library/1.2/P", "|library", "|1.2", "|P"},
		{"framework/2.0/F library/1.2/P", "|library|framework", "|1.2|2.0", "|P|F"}, // one of before is not told again
	} {
		for _, text := range strings.Fields(row.give) {
			info := driverInfo(text)
			b.must("client", "appendMetadata", d("driverInfoOptions", d("name", info.Name, "version", info.Version, "platform", info.Platform)))
		}
		told(i + 1) // there is neither another connection nor another hello
		s.on("ping", step{close: true})
		b.perform("ping")
		driver, rest := told(i + 2)
		testkit.Equal(t, row.give, driver, [...]string{first[0] + row.name, first[1] + row.version, first[2] + row.platform})
		testkit.Equal(t, "the rest", rest, others)
	}
}
