package deployment

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/unified-test-runner/utr/deployment/direct"
	"github.com/unified-test-runner/utr/deployment/internal/local"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// commands are the commands of transcripts.
var transcripts = testkit.Commands{
	"at": func(_ *testing.T, a []string) (string, error) {
		u, err := parseURI(a[1])
		return u.at(a[0]).String(), err
	},
	"direct": func(_ *testing.T, a []string) (string, error) {
		u, err := parseURI(a[1])
		return u.direct(a[0]).String(), err
	},
	"parse":   func(_ *testing.T, a []string) (string, error) { u, err := parseURI(a[0]); return u.String(), err },
	"check":   func(_ *testing.T, a []string) (string, error) { return "", CheckURI(a[0]) },
	"options": func(_ *testing.T, a []string) (string, error) { return fmt.Sprint(OptionsOf(a[0])), nil },
	"authenticates": func(t *testing.T, a []string) (string, error) {
		return fmt.Sprint(parsed(t, a[0]).authenticates()), nil
	},
	"credentials": func(_ *testing.T, a []string) (string, error) {
		user, password, found := credentials(a[0], strings.Split(a[1], ","))
		return fmt.Sprintf("%q %q %t", user, password, found), nil
	},
	"resolve": func(t *testing.T, a []string) (string, error) { // with the hosts and the TXT record of NAME
		resolves(t, strings.Split(a[1], ","), a[2])
		u, err := parsed(t, strings.Replace(a[0], "NAME", srvName, 1)).resolved(t.Context())
		return u.String(), err
	},
	"option": func(_ *testing.T, a []string) (string, error) {
		o, err := ParseURIOption(a[0])
		if o.Name == "" {
			return "", err
		}
		return o.Name + " is " + o.Value, err
	},
	"scripting": func(t *testing.T, a []string) (string, error) { // replies to buildInfo and getCmdLineOpts
		return fmt.Sprint(!noScripting(document[bson.Raw](t, a[0]), document[bson.Raw](t, a[1]))), nil
	},
	"serving": func(t *testing.T, a []string) (string, error) { // hosts with their replies
		hosts, replies, errs := make([]string, len(a)), make([]direct.Hello, len(a)), make([]error, len(a))
		for i, about := range a {
			host, hello, _ := strings.Cut(about, " ")
			if hosts[i] = host; strings.HasPrefix(hello, "{") {
				replies[i], errs[i] = direct.ReadHello(document[bson.Raw](t, hello), nil)
			} else {
				errs[i] = errors.New(hello)
			}
		}
		return "lacks: " + strings.Join(notServing(hosts, replies, errs), "; "), nil
	},
	"release": func(_ *testing.T, a []string) (string, error) {
		// its version, access control, and the requested topologies
		r := local.Release{Mongod: "/r/mongod", Mongos: "/r/mongos", Version: local.Version{8, 0, 4}}
		if a[0] == "old" {
			r.Version = local.Version{4, 2, 24}
		} else if a[0] == "bare" {
			r.Mongos = ""
		}
		var o LocalOptions
		if a[1] != "both" {
			o.Auth = new(bool)
			*o.Auth = a[1] == "auth"
		}
		for _, topology := range strings.Fields(a[2]) {
			o.Topologies = append(o.Topologies, Topology(topology))
		}
		offers, err := localOffers(r, o)
		var names []string
		for _, about := range offers {
			names = append(names, about.Name)
			if shape := o.shape(about); about.Auth != shape.Auth || about.Version != [3]int(r.Version) {
				names = append(names, fmt.Sprint("which starts with ", shape, about))
			}
		}
		return strings.Join(names, ", "), err
	},
	"distinct": func(t *testing.T, a []string) (string, error) { // descriptions, the last of which gets a name
		var all []Description
		for _, about := range a {
			name, parameters, _ := strings.Cut(about, " {")
			all = append(all, Description{Name: name, Parameters: document[bson.Raw](t, "{"+parameters)})
		}
		last := len(all) - 1
		return distinct(all[last], all[:last], []string{"set"}).Name, nil
	},
	"passing": func(_ *testing.T, a []string) (string, error) {
		// an error in a reply, or a write concern error, also next to write errors
		code, _ := strconv.Atoi(a[1])
		err := map[string]error{
			"none":    nil,
			"foreign": errors.New("another error"),
			"network": mongo.CommandError{Labels: []string{"NetworkError"}},
			"reply":   errors.Join(mongo.CommandError{Code: int32(code)}),
			"concern": mongo.WriteException{WriteConcernError: &mongo.WriteConcernError{Code: code}},
			"write": mongo.WriteException{WriteConcernError: &mongo.WriteConcernError{Code: code},
				WriteErrors: mongo.WriteErrors{{Code: 11000}}},
		}[a[0]]
		return fmt.Sprint(direct.Transient(err)), nil
	},
	// Each offer can be acquired and used through all its connection strings, and its description is correct.
	"embed": func(t *testing.T, a []string) (string, error) { // a version, access control, and topologies
		o := EmbeddedOptions{Version: a[0], TLS: strings.Contains(a[1], "TLS")}
		if !strings.Contains(a[1], "both") {
			o.Auth = new(bool)
		}
		for _, topology := range strings.Fields(a[2]) {
			o.Topologies = append(o.Topologies, Topology(topology))
		}
		s := newScript(t)
		var err error
		if s.Source, err = OpenEmbedded(o); err != nil {
			return "", err
		}
		defer s.play("close")
		var names []string
		for i, offer := range s.Offers() {
			names = append(names, offer.Name)
			if offer.Auth && offer.Topology != Single {
				continue // authentication is slow, and program/internal/acceptance covers it
			}
			s.play(strings.ReplaceAll("lend a/N; ours a/N; use a/N; return a/N; lend a/N; break a/N; lend b/N", "N",
				strconv.Itoa(i)))
			found, err := probe(testkit.Context(t), s.the(fmt.Sprintf("b/%d", i)).URI())
			testkit.Check(t, err)
			testkit.Equal(t, "a probe", []any{found.Topology, found.Version, found.ReplicaSetShards},
				[]any{offer.Topology, offer.Version, offer.ReplicaSetShards})
		}
		return strings.Join(names, ", "), nil
	},
}

func TestTranscripts(t *testing.T) {
	for _, name := range []string{"uris", "offers", "errors", "embedded"} {
		transcripts.Play(t, "testdata/"+name+".txt")
	}
}
