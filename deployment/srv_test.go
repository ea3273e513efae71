package deployment

import (
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/dns"

	"github.com/unified-test-runner/utr/embedded"
)

// srvName is below the same domain as 127.0.0.1, if that is taken for a name, as
// the hosts of an SRV record have to be.
const srvName = "cluster.0.0.1"

// named has srvName stand for hosts, with a TXT record unless that is empty. No
// test that uses it runs beside others: there is one resolver.
func named(t *testing.T, hosts []string, txt string) {
	t.Helper()
	before := dns.DefaultResolver
	t.Cleanup(func() { dns.DefaultResolver = before })
	var records []*net.SRV
	for _, h := range hosts {
		host, port, err := net.SplitHostPort(h)
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, &net.SRV{Target: host + ".", Port: uint16(n)})
	}
	dns.DefaultResolver = &dns.Resolver{
		LookupSRV: func(_, _, name string) (string, []*net.SRV, error) {
			if name != srvName {
				return "", nil, errors.New("there is no such name: " + name)
			}
			return "", records, nil
		},
		LookupTXT: func(string) ([]string, error) {
			if txt == "" {
				return nil, nil
			}
			return []string{txt}, nil
		},
	}
}

// An SRV name stands for hosts, and for options that its TXT record has: those
// of the connection string go first.
func TestResolved(t *testing.T) {
	two := []string{"127.0.0.1:1", "127.0.0.1:2"}
	for _, r := range []struct {
		reason, in, txt, want string
	}{
		{"hosts are what they are", "mongodb://a:1/?w=1", "authSource=x", "mongodb://a:1/?w=1"},
		{"a name stands for hosts, with TLS", "mongodb+srv://" + srvName + "/", "", "mongodb://127.0.0.1:1,127.0.0.1:2/?tls=true"},
		{"unless it says otherwise", "mongodb+srv://" + srvName + "/?tls=false", "", "mongodb://127.0.0.1:1,127.0.0.1:2/?tls=false"},
		{"where users are", "mongodb+srv://u:p@" + srvName + "/db", "authSource=there", "mongodb://u:p@127.0.0.1:1,127.0.0.1:2/db?tls=true&authSource=there"},
		{"nobody asks where users are", "mongodb+srv://" + srvName + "/db", "authSource=there", "mongodb://127.0.0.1:1,127.0.0.1:2/db?tls=true"},
		{"the set", "mongodb+srv://" + srvName + "/", "replicaSet=rs", "mongodb://127.0.0.1:1,127.0.0.1:2/?tls=true&replicaSet=rs"},
		{"the string goes first", "mongodb+srv://u:p@" + srvName + "/?authSource=here", "authSource=there&replicaSet=rs",
			"mongodb://u:p@127.0.0.1:1,127.0.0.1:2/?authSource=here&tls=true&replicaSet=rs"},
	} {
		t.Run(r.reason, func(t *testing.T) {
			named(t, two, r.txt)
			u, err := parseURI(r.in)
			if err != nil {
				t.Fatal(err)
			}
			if u, err = u.resolved(); err != nil {
				t.Fatal(err)
			}
			if got := u.String(); got != r.want {
				t.Errorf("%s, want %s", got, r.want)
			}
		})
	}
	t.Run("a load balancer", func(t *testing.T) {
		named(t, two[:1], "loadBalanced=true")
		u, _ := parseURI("mongodb+srv://" + srvName + "/")
		if got, err := u.resolved(); err != nil || got.String() != "mongodb://127.0.0.1:1/?tls=true&loadBalanced=true" {
			t.Error(got, err)
		}
	})
	t.Run("a name of nobody", func(t *testing.T) {
		_, err := OpenCluster(within(t), ClusterOptions{URI: "mongodb+srv://user:hunter22@other.0.0.1/"})
		if err == nil || strings.Contains(err.Error(), "hunter22") {
			t.Error(err)
		}
	})
}

// A deployment that is named in the DNS is the same as one whose hosts are:
// each of them can be reached alone. A mongos does not tell its own address.
func TestClusterOfAName(t *testing.T) {
	for _, r := range []struct {
		reason string
		o      embedded.Options
		want   Topology
		txt    string
	}{
		{"routers", embedded.Options{Topology: embedded.Sharded, Mongoses: 2}, Sharded, ""},
		{"members", embedded.Options{Topology: embedded.ReplicaSet, Members: 3}, ReplicaSet, "replicaSet=rs0"},
		{"a load balancer", embedded.Options{Topology: embedded.LoadBalanced}, LoadBalanced, "loadBalanced=true"},
	} {
		t.Run(r.reason, func(t *testing.T) {
			d := serving(t, r.o)
			u, err := parseURI(d.URI())
			if err != nil {
				t.Fatal(err)
			}
			named(t, u.hosts, r.txt)
			text := "mongodb+srv://" + srvName + "/?tls=false"
			s, err := OpenCluster(within(t), ClusterOptions{URI: text, SingleURI: d.URI(), Lock: &LockOptions{}})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			c, err := s.Acquire(within(t), 0)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Release(c, false)
			about := c.Description()
			if about.Topology != r.want || c.URI() != text {
				t.Errorf("%+v at %s", about, c.URI())
			}
			if !slices.Equal(about.Hosts, u.hosts) {
				t.Fatalf("hosts %v, want %v", about.Hosts, u.hosts)
			}
			for _, host := range about.Hosts {
				client := admin(t, c.DirectURI(host))
				if err := client.Database("admin").RunCommand(within(t), bson.D{{Key: "ping", Value: 1}},
					options.RunCmd().SetReadPreference(readpref.Nearest())).Err(); err != nil {
					t.Errorf("%s: %v", host, err)
				}
			}
			if err := admin(t, c.SingleURI()).Ping(within(t), nil); err != nil {
				t.Error(err)
			}
			if swept, err := ClearFailPoints(within(t), Target{URI: text}); err != nil || len(swept.Unasked) > 0 {
				t.Error(swept.Unasked, err)
			}
		})
	}
}
