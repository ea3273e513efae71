package deployment

import (
	"context"
	"errors"
	"net"
	"runtime"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/dns"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// A client that streams may wait for a heartbeat, 10 s, when it is disconnected.
func TestClientsPoll(t *testing.T) {
	testkit.Equal(t, "monitoring", *parsed(t, "mongodb://a/").client("x").ServerMonitoringMode, "poll")
}

func TestRedact(t *testing.T) {
	u := "mongodb://u:p%40" + testkit.Secret + "@a/"
	testkit.Fails(t, redact(t.Context(), errors.New("cannot use p@"+testkit.Secret+" of "+u), u), "cannot use *** of mongodb://***@a/")
}

// srvName is below the same domain as 127.0.0.1, if that is taken for a name, as
// the hosts of an SRV record have to be.
const srvName = "cluster.0.0.1"

// resolves makes srvName stand for hosts, with a TXT record unless that is empty.
// No test that uses it runs beside others: there is one resolver.
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
				return "", nil, errors.New("there is no such name: " + name)
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
	testkit.Fails(t, err, "cannot use the deployment at other.0.0.1: ")
	_, err = ClearFailPoints(testkit.Context(t), Target{URI: nobody})
	testkit.Fails(t, err, "no such name")
}

// Each connection string has the options; the source below gets back what it lent.
func TestWithURIOptions(t *testing.T) {
	inner, err := OpenEmbedded(t.Context(), EmbeddedOptions{Topologies: []Topology{Sharded}, Auth: new(bool)})
	testkit.Check(t, err)
	s := newTale(t)
	s.Source = WithURIOptions(inner, []URIOption{{"compressors", "zlib"}, {"appName", "a b"}})
	if WithURIOptions(inner, nil) != inner {
		t.Error("without options it is another source")
	}
	s.tell("lend a")
	d := s.the("a")
	for _, text := range []string{d.URI(), d.SingleURI(), d.DirectURI(d.Description().Hosts[0])} {
		testkit.Says(t, text, "compressors=zlib", "appName=a+b")
		testkit.Check(t, CheckURI(text))
	}
	testkit.Equal(t, "the connection string of one mongos is that of all", d.SingleURI() == d.URI(), false)
	s.tell("return a; lend a; close")
}

// mortal is a deployment whose server died.
type mortal struct{ Deployment }

var errDeath = errors.New("it ended")

func (mortal) Dead() error { return errDeath }

// A deployment behind options knows of its deaths, and a source of its mending.
func TestBelowOptions(t *testing.T) {
	behind := func(d Deployment) Deployment { return optionDeployment{Deployment: d} }
	testkit.Equal(t, "deaths", []error{Died(mortal{}), Died(behind(mortal{}))}, []error{errDeath, errDeath})
	testkit.Equal(t, "nobody knows of one", []error{Died(&cluster{}), Died(behind(&cluster{})), Died(nil)}, []error{nil, nil, nil})
	p := newPool(nil)
	with := WithURIOptions(p, []URIOption{{"compressors", "zlib"}})
	testkit.Equal(t, "sources that mend", []bool{Mends(p), Mends(with), Mends(&clusterSource{})}, []bool{true, true, false})
	testkit.Check(t, p.Close())
}

// A look-up that is never answered holds nobody up.
func TestResolvingEnds(t *testing.T) {
	before, over := dns.DefaultResolver, make(chan struct{})
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { close(over); dns.DefaultResolver = before })
	dns.DefaultResolver = &dns.Resolver{LookupTXT: func(string) ([]string, error) { // which the driver asks first
		cancel(errors.New("interrupted"))
		<-over
		runtime.Goexit() // it must not meet the resolver of other tests
		return nil, nil
	}}
	_, err := OpenCluster(ctx, ClusterOptions{URI: "mongodb+srv://" + srvName + "/"})
	testkit.Fails(t, err, "interrupted")
}
