package deployment

import (
	"errors"
	"net"
	"strconv"
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
		t.Run(r.reason, func(t *testing.T) {
			parsed, err := parseURI(r.in)
			if r.want == "" {
				testkit.Fails(t, err)
				return
			}
			testkit.Check(t, err)
			testkit.Equal(t, "changed", r.change(parsed), r.want)
		})
	}
	// A client that streams may wait for a heartbeat, 10 s, when it is disconnected.
	testkit.Equal(t, "monitoring", *parsed(t, "mongodb://a/").client("x").ServerMonitoringMode, "poll")
}

func TestURIAuthenticates(t *testing.T) {
	for _, r := range []struct {
		reason, in string
		want       bool
	}{
		{"nobody", "mongodb://a/?tls=true", false},
		{"a user", "mongodb://u:p@a/", true},
		{"a certificate", "mongodb://a/?tls=true&authMechanism=MONGODB-X509", true},
		{"a token, whatever the case", "mongodb://a/?AUTHMECHANISM=MONGODB-OIDC", true},
	} {
		testkit.Equal(t, r.reason, parsed(t, r.in).authenticates(), r.want)
	}
}

func TestRedact(t *testing.T) {
	u := "mongodb://u:p%40" + testkit.Secret + "@a/"
	testkit.Fails(t, redact(t.Context(), errors.New("cannot use p@"+testkit.Secret+" of "+u), u), "cannot use *** of mongodb://***@a/")
}

// srvName is below the same domain as 127.0.0.1, if that is taken for a name, as
// the hosts of an SRV record have to be.
const srvName = "cluster.0.0.1"

// named makes srvName stand for hosts, with a TXT record unless that is empty.
// No test that uses it runs beside others: there is one resolver.
func named(t *testing.T, hosts []string, txt string) {
	t.Helper()
	before := dns.DefaultResolver
	t.Cleanup(func() { dns.DefaultResolver = before })
	var records []*net.SRV
	for _, h := range hosts {
		host, port, err := net.SplitHostPort(h)
		testkit.Check(t, err)
		n, err := strconv.ParseUint(port, 10, 16)
		testkit.Check(t, err)
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

// An SRV name stands for hosts, and for the options of its TXT record: those
// of the connection string go first.
func TestResolved(t *testing.T) {
	const one, two, user = "127.0.0.1:1", "127.0.0.1:1,127.0.0.1:2", "mongodb+srv://u:p@" + srvName
	hosts := []string{"127.0.0.1:1", "127.0.0.1:2"}
	for _, r := range []struct {
		reason, in string
		hosts      []string
		txt, want  string
	}{
		{"hosts stay as they are", "mongodb://a:1/?w=1", hosts, "authSource=x", "mongodb://a:1/?w=1"},
		{"a name stands for hosts, with TLS", "mongodb+srv://" + srvName + "/", hosts, "", "mongodb://" + two + "/?tls=true"},
		{"where users are", user + "/db", hosts, "authSource=there", "mongodb://u:p@" + two + "/db?tls=true&authSource=there"},
		{"nobody asks where users are", "mongodb+srv://" + srvName + "/db", hosts, "authSource=there", "mongodb://" + two + "/db?tls=true"},
		{"the set", "mongodb+srv://" + srvName + "/", hosts, "replicaSet=rs", "mongodb://" + two + "/?tls=true&replicaSet=rs"},
		{"the string goes first", user + "/?authSource=here", hosts, "authSource=there&replicaSet=rs",
			"mongodb://u:p@" + two + "/?authSource=here&tls=true&replicaSet=rs"},
		{"a load balancer", "mongodb+srv://" + srvName + "/", hosts[:1], "loadBalanced=true", "mongodb://" + one + "/?tls=true&loadBalanced=true"},
	} {
		t.Run(r.reason, func(t *testing.T) {
			named(t, r.hosts, r.txt)
			u, err := parsed(t, r.in).resolved()
			testkit.Check(t, err)
			testkit.Equal(t, "resolved", u, r.want)
		})
	}
	t.Run("a name of nobody", func(t *testing.T) {
		named(t, nil, "")
		const nobody = "mongodb+srv://u:" + testkit.Secret + "@other.0.0.1/"
		_, err := OpenCluster(testkit.Context(t), ClusterOptions{URI: nobody})
		testkit.Fails(t, err, "cannot use the deployment at other.0.0.1: ")
		_, err = ClearFailPoints(testkit.Context(t), Target{URI: nobody})
		testkit.Fails(t, err, "no such name")
	})
}

func TestURIOptions(t *testing.T) {
	for _, r := range []struct {
		reason, text string
		parses, fits bool
	}{
		{"an option", "compressors=zlib", true, true},
		{"a value with an equals sign", "readPreferenceTags=dc:a=b", true, false},
		{"no value", "compressors", false, false},
		{"an empty value", "compressors=", false, false},
		{"no name", "=zlib", false, false},
		{"two options", "a&b=c", false, false},
		{"a value that is not a number", "maxPoolSize=many", true, false},
		{"a value that is neither true nor false", "loadBalanced=yes", true, false},
	} {
		o, err := ParseURIOption(r.text)
		if (err == nil) != r.parses {
			t.Errorf("%s: %v", r.reason, err)
		}
		if err != nil {
			continue
		}
		testkit.Equal(t, r.reason, o.Name+"="+o.Value, r.text)
		if err := CheckURIOptions([]URIOption{o}); (err == nil) != r.fits {
			t.Errorf("%s: %v", r.reason, err)
		}
	}
	testkit.Check(t, CheckURIOptions(nil))
}

// Each connection string has the options; the source below gets back what it lent.
func TestWithURIOptions(t *testing.T) {
	inner := opened[Source](t)(OpenEmbedded(t.Context(), EmbeddedOptions{Topologies: []Topology{Sharded}, Auth: new(bool)}))
	s := WithURIOptions(inner, []URIOption{{"compressors", "zlib"}, {"appName", "a b"}})
	if WithURIOptions(inner, nil) != inner {
		t.Error("without options it is another source")
	}
	d := borrow(t, s)
	for _, text := range []string{d.URI(), d.SingleURI(), d.DirectURI(d.Description().Hosts[0])} {
		testkit.Says(t, text, "compressors=zlib", "appName=a+b")
		testkit.Check(t, CheckURI(text))
	}
	if d.SingleURI() == d.URI() {
		t.Error("the connection string of a single mongos is that of all")
	}
	s.Release(d, false)
	if borrow(t, s) != d {
		t.Error("a deployment that was given back is not lent again")
	}
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
