package deployment

import (
	"errors"
	"net"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/dns"

	"github.com/unified-test-runner/utr/internal/testkit"
)

func TestURI(t *testing.T) {
	same := func(u uri) uri { return u }
	at := func(host string) func(uri) uri { return func(u uri) uri { return u.at(host) } }
	direct := func(host string) func(uri) uri { return func(u uri) uri { return u.direct(host) } }
	const u, srv = "mongodb://u:" + testkit.Secret, "mongodb+srv://c.example.com/"
	for _, r := range []struct {
		reason, in string
		change     func(uri) uri
		want       string // "" if it is refused
	}{
		{"one host keeps all else", "mongodb://a:1,b:2/db?replicaSet=rs&appName=x", at("c:3"), "mongodb://c:3/db?replicaSet=rs&appName=x"},
		{"a direct connection names no set", "mongodb://a:1,b:2/?replicaSet=rs&tls=true", direct("b:2"), "mongodb://b:2/?tls=true&directConnection=true"},
		{"nor is it load balanced", "mongodb://a:1/?loadBalanced=true", direct("a:1"), "mongodb://a:1/?directConnection=true"},
		{"credentials pass through as written", "mongodb://u%40x:p%2Fq@a:1/admin", at("b:2"), "mongodb://u%40x:p%2Fq@b:2/admin"},
		{"a user name may hold a colon and an at sign", "mongodb://u@x:p@a:1", at("b:2"), "mongodb://u@x:p@b:2/"},
		{"a name in DNS implies TLS", srv + "?srvMaxHosts=2", at("a:1"), "mongodb://a:1/?tls=true"},
		{"unless it says otherwise", srv + "?tls=false", at("a:1"), "mongodb://a:1/?tls=false"},
		{"also by the older name", srv + "?ssl=false", at("a:1"), "mongodb://a:1/?ssl=false"},
		{"options match whatever their case", "mongodb://a:1/?REPLICASET=rs", direct("a:1"), "mongodb://a:1/?directConnection=true"},
		{"options without a slash before them", "mongodb://a:1?w=1", same, "mongodb://a:1/?w=1"},
		{"an address of version six", "mongodb://[::1]:27017/", direct("[::1]:2"), "mongodb://[::1]:2/?directConnection=true"},
		{"no scheme", "u:" + testkit.Secret + "@localhost", same, ""},
		{"another scheme", "http://u:" + testkit.Secret + "@localhost", same, ""},
		{"no host", u + "@/", same, ""},
		{"an empty host", u + "@a,,b/", same, ""},
		{"an option without a value", u + "@a/?w", same, ""},
	} {
		if u, err := parseURI(r.in); r.want == "" {
			testkit.Fails(t, err)
		} else {
			testkit.Equal(t, r.reason, []any{r.change(u), err}, []any{r.want, nil})
		}
	}
	// A client that streams may wait for a heartbeat, 10 s, when it is disconnected.
	testkit.Equal(t, "monitoring", *parsed(t, "mongodb://a/").client("x").ServerMonitoringMode, "poll")
}

func TestURIAuthenticates(t *testing.T) {
	for in, want := range map[string]bool{
		"mongodb://a/?tls=true":                            false,
		"mongodb://u:p@a/":                                 true,
		"mongodb://a/?tls=true&authMechanism=MONGODB-X509": true,
		"mongodb://a/?AUTHMECHANISM=MONGODB-OIDC":          true,
	} {
		testkit.Equal(t, in, parsed(t, in).authenticates(), want)
	}
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

// An SRV name stands for hosts, and for the options of its TXT record: those
// of the connection string go first.
func TestResolved(t *testing.T) {
	const one, two, name, user = "127.0.0.1:1", "127.0.0.1:1,127.0.0.1:2", "mongodb+srv://" + srvName + "/", "mongodb+srv://u:p@" + srvName
	for _, r := range []struct {
		reason, in, hosts, txt, want string
	}{
		{"hosts stay as they are", "mongodb://a:1/?w=1", two, "authSource=x", "mongodb://a:1/?w=1"},
		{"a name stands for hosts, with TLS", name, two, "", "mongodb://" + two + "/?tls=true"},
		{"where users are", user + "/db", two, "authSource=there", "mongodb://u:p@" + two + "/db?tls=true&authSource=there"},
		{"nobody asks where users are", name + "db", two, "authSource=there", "mongodb://" + two + "/db?tls=true"},
		{"the set", name, two, "replicaSet=rs", "mongodb://" + two + "/?tls=true&replicaSet=rs"},
		{"the string goes first", user + "/?authSource=here", two, "authSource=there&replicaSet=rs",
			"mongodb://u:p@" + two + "/?authSource=here&tls=true&replicaSet=rs"},
		{"a load balancer", name, one, "loadBalanced=true", "mongodb://" + one + "/?tls=true&loadBalanced=true"},
	} {
		resolves(t, strings.Split(r.hosts, ","), r.txt)
		u, err := parsed(t, r.in).resolved()
		testkit.Equal(t, r.reason, []any{u, err}, []any{r.want, nil})
	}
	const nobody = "mongodb+srv://u:" + testkit.Secret + "@other.0.0.1/"
	_, err := OpenCluster(testkit.Context(t), ClusterOptions{URI: nobody})
	testkit.Fails(t, err, "cannot use the deployment at other.0.0.1: ")
	_, err = ClearFailPoints(testkit.Context(t), Target{URI: nobody})
	testkit.Fails(t, err, "no such name")
}

func TestURIOptions(t *testing.T) {
	for text, want := range map[string]string{
		"compressors=zlib":          "fits",
		"readPreferenceTags=dc:a=b": "parses",
		"maxPoolSize=many":          "parses",
		"loadBalanced=yes":          "parses",
		"compressors":               "neither",
		"compressors=":              "neither",
		"=zlib":                     "neither",
		"a&b=c":                     "neither",
	} {
		o, err := ParseURIOption(text)
		got := "neither"
		if err == nil {
			testkit.Equal(t, "option", o.Name+"="+o.Value, text)
			got = "fits"
			if CheckURIOptions([]URIOption{o}) != nil {
				got = "parses"
			}
		}
		testkit.Equal(t, text, got, want)
	}
	testkit.Check(t, CheckURIOptions(nil))
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
