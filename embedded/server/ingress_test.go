package server_test

import (
	"errors"
	"io"
	"math"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/server"
)

// guarded starts a server whose limiters follow a clock that the test turns.
func guarded(t *testing.T, version string, users *server.Users, params bson.D) (address string, advance func(ms int), asleep func(*testing.T, int)) {
	t.Helper()
	p, err := server.ProfileNamed(version)
	if err != nil {
		t.Fatal(err)
	}
	clock, advance, asleep := server.HandClock()
	c := server.NewCluster(server.Config{Kind: server.Single, Profile: p, Backend: stub{}, Users: users, Parameters: params, Clock: clock})
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	s, err := c.Add("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return s.Address(), advance, asleep
}

// Three requests at once, one more every second.
func requests(more ...any) bson.D {
	return append(d("ingressRequestRateLimiterEnabled", true, "ingressRequestAdmissionRatePerSec", 1,
		"ingressRequestAdmissionBurstCapacitySecs", 3), d(more...)...)
}

func TestRequestLimiter(t *testing.T) {
	for _, row := range []struct {
		reason, version string
		params          bson.D
		labels          []string
		base            int64
	}{
		{"as it came", "8.2", requests(), []string{"SystemOverloadedError", "RetryableError"}, 0},
		{"with a label more", "9.0", requests(), []string{"SystemOverloadedError", "RetryableError", "NoWritesPerformed"}, 0},
		{"retries are not wanted", "9.0", requests("ingressRequestRateLimiterAllowRetries", false),
			[]string{"SystemOverloadedError", "NoWritesPerformed"}, 0},
		{"the server says how long to wait", "9.0", requests("externalClientBaseBackoffMS", 50),
			[]string{"SystemOverloadedError", "RetryableError", "NoWritesPerformed"}, 50},
	} {
		t.Run(row.reason, func(t *testing.T) {
			address, advance, _ := guarded(t, row.version, nil, row.params)
			c := dial(t, address)
			for i := range 3 {
				if reply := c.call(d("ping", 1)); code(reply) != 0 {
					t.Fatalf("request %d: %v", i, reply)
				}
			}
			reply := c.call(d("insert", "c"))
			if code(reply) != 462 || !slices.Equal(labels(reply), row.labels) {
				t.Errorf("the fourth: %v", reply)
			}
			if name := reply.Lookup("codeName").StringValue(); name != "IngressRequestRateLimitExceeded" {
				t.Errorf("codeName %s", name)
			}
			if base, _ := reply.Lookup("baseBackoffMS").AsInt64OK(); base != row.base {
				t.Errorf("baseBackoffMS %d: %v", base, reply)
			}
			advance(999)
			if reply := c.call(d("endSessions", bson.A{})); code(reply) != 462 {
				t.Errorf("a moment too early: %v", reply)
			}
			advance(1)
			if reply := c.call(d("ping", 1)); code(reply) != 0 {
				t.Errorf("a second later: %v", reply)
			}
			if reply := c.call(d("hello", 1)); code(reply) != 462 {
				t.Errorf("hello, without access control: %v", reply)
			}
			advance(10_000)
			status := c.call(d("serverStatus", 1)).Lookup("network", "ingressRequestRateLimiter").Document()
			for name, want := range map[string]int64{"attemptedAdmissions": 8, "successfulAdmissions": 5, "rejectedAdmissions": 3} {
				if got := status.Lookup(name).AsInt64(); got != want {
					t.Errorf("%s is %d, want %d", name, got, want)
				}
			}
			if tokens := status.Lookup("totalAvailableTokens").Double(); tokens != 2 {
				t.Errorf("%f tokens", tokens)
			}
		})
	}
}

// The limiter applies to authenticated connections only: handshakes and
// monitors pass.
func TestRequestLimiterAuthentication(t *testing.T) {
	users := server.NewUsers()
	if err := users.Add("admin", "u", "p"); err != nil {
		t.Fatal(err)
	}
	address, _, _ := guarded(t, "8.2", users, requests())
	c := dial(t, address)
	for range 20 {
		if reply := c.call(d("hello", 1)); code(reply) != 0 {
			t.Fatalf("hello: %v", reply)
		}
	}
	if reply := c.call(d("find", "c")); code(reply) != 13 {
		t.Errorf("unauthenticated: %v", reply)
	}
}

func TestRequestLimiterExemption(t *testing.T) {
	address, _, _ := guarded(t, "8.2", nil, requests("ingressRequestRateLimiterApplicationExemptions", d("appNames", bson.A{"monitor"})))
	free, bound := dial(t, address), dial(t, address)
	hello := func(app string) bson.D {
		return d("hello", 1, "client", d("application", d("name", app), "driver", d("name", "d", "version", "1"), "os", d("type", "o")))
	}
	free.call(hello("monitoring agent"))
	bound.call(hello("a monitor")) // that takes the second token
	for range 5 {
		if reply := free.call(d("ping", 1)); code(reply) != 0 {
			t.Errorf("exempt: %v", reply)
		}
	}
	bound.call(d("ping", 1))
	if reply := bound.call(d("ping", 1)); code(reply) != 462 {
		t.Errorf("not exempt: %v", reply)
	}
}

func TestRequestQueue(t *testing.T) {
	address, advance, asleep := guarded(t, "9.0", nil, requests("ingressRequestAdmissionMaxQueueDepth", 1))
	a, b := dial(t, address), dial(t, address)
	for range 3 {
		a.call(d("ping", 1))
	}
	a.send(0, d("ping", 1, "$db", "admin"))
	asleep(t, 1)
	if reply := b.call(d("ping", 1)); code(reply) != 462 {
		t.Errorf("the queue is full: %v", reply)
	}
	advance(1000)
	if reply, _ := a.receive(); code(reply) != 0 {
		t.Errorf("after the queue: %v", reply)
	}
}

func TestConnectionLimiter(t *testing.T) {
	address, advance, asleep := guarded(t, "8.2", nil, d("ingressConnectionEstablishmentRateLimiterEnabled", true,
		"ingressConnectionEstablishmentRatePerSec", 20, "ingressConnectionEstablishmentBurstCapacitySecs", 1,
		"ingressConnectionEstablishmentMaxQueueDepth", 1))
	var first *client
	for i := range 20 {
		c := dial(t, address)
		if reply := c.call(d("hello", 1)); code(reply) != 0 {
			t.Fatalf("connection %d: %v", i, reply)
		}
		if first == nil {
			first = c
		}
	}
	queued := dial(t, address)
	queued.send(0, d("hello", 1, "$db", "admin"))
	asleep(t, 1)
	rejected := dial(t, address)
	_ = rejected.SetReadDeadline(time.Now().Add(patience))
	if n, err := rejected.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("the connection too much was not closed without a word: %d bytes, %v", n, err)
	}
	connections := func() bson.Raw { return first.call(d("serverStatus", 1)).Lookup("connections").Document() }
	if got := connections(); got.Lookup("queuedForEstablishment").AsInt64() != 1 || got.Lookup("establishmentRateLimit", "rejected").AsInt64() != 1 {
		t.Errorf("status: %v", got)
	}
	advance(50)
	if reply, _ := queued.receive(); code(reply) != 0 {
		t.Errorf("after the queue: %v", reply)
	}
	// Who is connected notices nothing, and can switch the limiter off.
	if reply := first.call(d("setParameter", 1, "ingressConnectionEstablishmentRateLimiterEnabled", false)); !reply.Lookup("was").Boolean() {
		t.Errorf("was: %v", reply)
	}
	for range 30 {
		if reply := dial(t, address).call(d("hello", 1)); code(reply) != 0 {
			t.Fatalf("without the limiter: %v", reply)
		}
	}
}

// Closing the deployment ends those who wait in the queue.
func TestConnectionQueueEnds(t *testing.T) {
	address, _, asleep := guarded(t, "8.2", nil, d("ingressConnectionEstablishmentRateLimiterEnabled", true,
		"ingressConnectionEstablishmentRatePerSec", 1, "ingressConnectionEstablishmentBurstCapacitySecs", 0.5,
		"ingressConnectionEstablishmentMaxQueueDepth", 5))
	for i := range 5 {
		dial(t, address)
		asleep(t, i+1)
	}
}

func TestIngressParameters(t *testing.T) {
	t.Run("unknown before 8.2", func(t *testing.T) {
		c := dial(t, cluster(t, server.Single, "8.0", 1).Members()[0].Address())
		if reply := c.call(d("setParameter", 1, "ingressRequestRateLimiterEnabled", true)); code(reply) != 72 {
			t.Errorf("got %v", reply)
		}
		if _, err := c.call(d("serverStatus", 1)).LookupErr("network"); err == nil {
			t.Error("serverStatus tells of limiters")
		}
	})
	t.Run("baseBackoffMS came with 9.0", func(t *testing.T) {
		c := dial(t, cluster(t, server.Single, "8.2", 1).Members()[0].Address())
		if reply := c.call(d("setParameter", 1, "externalClientBaseBackoffMS", 50)); code(reply) != 72 {
			t.Errorf("got %v", reply)
		}
	})
	c := dial(t, cluster(t, server.Single, "9.0", 1).Members()[0].Address())
	for _, row := range []struct {
		reason, name string
		value        any
		code         int64
		was          any
	}{
		{"as it is at first", "ingressConnectionEstablishmentRateLimiterEnabled", true, 0, false},
		{"a number as a switch", "ingressConnectionEstablishmentRateLimiterEnabled", 0, 0, true},
		{"no switch", "ingressRequestRateLimiterEnabled", "on", 2, nil},
		{"unlimited at first", "ingressConnectionEstablishmentRatePerSec", 20, 0, int32(math.MaxInt32)},
		{"a double where whole numbers belong", "ingressConnectionEstablishmentRatePerSec", 30.0, 0, int32(20)},
		{"less than one", "ingressRequestAdmissionRatePerSec", 0, 2, nil},
		{"more than there is", "ingressRequestAdmissionRatePerSec", int64(1) << 40, 2, nil},
		{"an int where a double belongs", "ingressRequestAdmissionBurstCapacitySecs", 2, 0, math.MaxFloat64},
		{"no burst", "ingressRequestAdmissionBurstCapacitySecs", 0, 2, nil},
		{"a negative queue", "ingressConnectionEstablishmentMaxQueueDepth", -1, 2, nil},
		{"a queue", "ingressConnectionEstablishmentMaxQueueDepth", 4, 0, int32(0)},
		{"no list of names", "ingressRequestRateLimiterApplicationExemptions", "app", 2, nil},
		{"a backoff", "externalClientBaseBackoffMS", 50, 0, int64(0)},
		{"a negative backoff", "externalClientBaseBackoffMS", -1, 2, nil},
		{"no number", "externalClientBaseBackoffMS", "50", 2, nil},
	} {
		reply := c.call(d("setParameter", 1, row.name, row.value))
		if code(reply) != row.code {
			t.Errorf("%s: %v", row.reason, reply)
			continue
		}
		if row.code == 0 {
			want := raw(t, d("was", row.was)).Lookup("was")
			if got := reply.Lookup("was"); !got.Equal(want) {
				t.Errorf("%s: was %v, want %v", row.reason, got, want)
			}
		}
	}
	if got := c.call(d("getParameter", 1, "externalClientBaseBackoffMS", 1)).Lookup("externalClientBaseBackoffMS"); got.AsInt64() != 50 {
		t.Errorf("getParameter: %v", got)
	}
}

// baseBackoffMS goes with every overload error, those of fail points too.
func TestBaseBackoff(t *testing.T) {
	c := dial(t, cluster(t, server.Single, "9.0", 1).Members()[0].Address())
	c.call(d("setParameter", 1, "externalClientBaseBackoffMS", 50))
	for _, row := range []struct {
		reason string
		labels []string
		want   int64
	}{
		{"an overload error", []string{"SystemOverloadedError", "RetryableError"}, 50},
		{"another error", []string{"RetryableError"}, 0},
	} {
		c.call(d("configureFailPoint", "failCommand", "mode", "alwaysOn",
			"data", d("failCommands", bson.A{"insert"}, "errorCode", 462, "errorLabels", row.labels)))
		reply := c.call(d("insert", "c"))
		if got, _ := reply.Lookup("baseBackoffMS").AsInt64OK(); got != row.want {
			t.Errorf("%s: %v", row.reason, reply)
		}
	}
}

func TestConfigParametersRefused(t *testing.T) {
	p, err := server.ProfileNamed("8.2")
	if err != nil {
		t.Fatal(err)
	}
	for _, params := range []bson.D{d("noSuchParameter", 1), d("ingressRequestAdmissionRatePerSec", 0), d("quiet", func() {})} {
		c := server.NewCluster(server.Config{Kind: server.Single, Profile: p, Backend: stub{}, Parameters: params})
		if _, err := c.Add("127.0.0.1:0"); err == nil {
			t.Errorf("%v was taken", params)
		} else if refused := new(command.Error); len(params) > 0 && params[0].Key == "noSuchParameter" && !errors.As(err, &refused) {
			t.Errorf("%v: %v", params, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}
