package deployment

import (
	"context"
	"errors"
	"net"
	"runtime"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/dns"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/wire/replies"
)

// A client with streaming heartbeats may wait 10 s for the next one when it disconnects.
func TestClientsPoll(t *testing.T) {
	testkit.Equal(t, "monitoring", *parsed(t, "mongodb://a/").client("x").ServerMonitoringMode, "poll")
}

func TestRepliesAreChecked(t *testing.T) {
	testkit.Equal(t, "dialer", parsed(t, "mongodb://a/").client("x").Dialer == replies.Dialer{}, true)
}

func TestRedact(t *testing.T) {
	u := "mongodb://u:p%40" + testkit.Secret + "@a/"
	testkit.ErrorContains(t, parsed(t, u).redact(errors.New("cannot use p@"+testkit.Secret+" of "+u)),
		"cannot use *** of mongodb://***@a/")
}

// srvName has the same parent domain as 127.0.0.1, as the specification requires of SRV records.
const srvName = "cluster.0.0.1"

// resolves replaces the driver's resolver by one that resolves srvName to hosts and a TXT record. The resolver is
// global, so tests that use it do not run in parallel.
func resolves(t *testing.T, hosts []string, txt string) {
	t.Helper()
	before := dns.DefaultResolver
	t.Cleanup(func() { dns.DefaultResolver = before })
	var records []*net.SRV
	for _, h := range hosts {
		address, err := net.ResolveTCPAddr("tcp", h)
		testkit.Check(t, err)
		records = append(records, &net.SRV{Target: address.IP.String() + ".", Port: uint16(address.Port)})
	}
	dns.DefaultResolver = &dns.Resolver{
		LookupSRV: func(_, _, name string) (string, []*net.SRV, error) {
			if name != srvName {
				return "", nil, errors.New("no such name: " + name)
			}
			return "", records, nil
		},
		LookupTXT: func(string) ([]string, error) { return strings.Fields(txt), nil },
	}
}

func TestUnknownName(t *testing.T) {
	resolves(t, nil, "")
	const nobody = "mongodb+srv://u:" + testkit.Secret + "@other.0.0.1/"
	_, err := OpenCluster(testkit.Context(t), ClusterOptions{URI: nobody})
	testkit.ErrorContains(t, err, "cannot use the deployment at other.0.0.1: ")
	testkit.ErrorContains(t, Clean(testkit.Context(t), nobody, "", nil), "no such name")
}

// Each connection string has the additional options. They replace its own.
func TestURIOptions(t *testing.T) {
	more := []URIOption{{"compressors", "zlib"}, {"appName", "a b"}}
	o := EmbeddedOptions{Topologies: []Topology{Sharded}, Auth: new(bool), URIOptions: more}
	inner, err := OpenEmbedded(o)
	testkit.Check(t, err)
	s := newScript(t)
	s.Source = inner
	s.play("lend a")
	d := s.the("a")
	theirs, err := OpenCluster(testkit.Context(t),
		ClusterOptions{URI: d.URI() + "&w=1", URIOptions: append(more, URIOption{"w", "2"})})
	testkit.Check(t, err)
	other, err := theirs.Acquire(t.Context(), 0)
	testkit.Check(t, err)
	for _, d := range []Deployment{d, other} {
		for _, text := range []string{d.URI(), d.SingleURI(), d.DirectURI(d.Description().Hosts[0])} {
			testkit.Contains(t, text, "compressors=zlib", "appName=a+b")
			testkit.Check(t, CheckURI(text))
			testkit.Equal(t, "its own option", strings.Contains(text, "w=1"), false)
		}
		testkit.Equal(t, "one mongos has the connection string of all", d.SingleURI() == d.URI(), false)
	}
	testkit.Check(t, theirs.Close())
	s.play("return a; lend a; close")
}

// The offers are what started servers report.
func TestEmbeddedOffers(t *testing.T) {
	for _, version := range embedded.Versions() {
		s := newScript(t)
		var err error
		s.Source, err = OpenEmbedded(EmbeddedOptions{Topologies: []Topology{Single}, Auth: new(bool), Version: version})
		testkit.Check(t, err)
		offered := s.Offers()[0]
		s.play("lend a")
		found, err := probe(t.Context(), s.the("a").URI())
		testkit.Check(t, err)
		offered.Hosts, found.Hosts = nil, nil
		parameters, _ := offered.Parameters.Elements() // a server also reports its fail points
		for _, e := range parameters {
			testkit.Equal(t, version+": "+e.Key(), e.Value(), found.Parameters.Lookup(e.Key()))
		}
		testkit.Equal(t, "has parameters", len(parameters) > 10, true)
		offered.Parameters, found.Parameters = nil, nil
		testkit.Equal(t, "offered", offered, found)
		s.play("return a; close")
	}
}

func TestRepairs(t *testing.T) {
	p := newPool(nil)
	p.repairs = true
	testkit.Equal(t, "sources that mend", []bool{p.Repairs(), newPool(nil).Repairs()}, []bool{true, false})
	testkit.Check(t, p.Close())
}

// A DNS lookup without an answer can be interrupted.
func TestResolvingEnds(t *testing.T) {
	before, end := dns.DefaultResolver, make(chan struct{})
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { close(end); dns.DefaultResolver = before })
	dns.DefaultResolver = &dns.Resolver{LookupTXT: func(string) ([]string, error) { // the driver looks up TXT first
		cancel(errors.New("interrupted"))
		<-end
		runtime.Goexit() // before the driver uses the resolver of another test
		return nil, nil
	}}
	_, err := OpenCluster(ctx, ClusterOptions{URI: "mongodb+srv://" + srvName + "/"})
	testkit.ErrorContains(t, err, "interrupted")
}
