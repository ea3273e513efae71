package proxy_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// Each field of failCommand and each mode, each error for which a server waits for no write concern, and what depends
// on the server, on one with its own fail points and on one behind the proxy: the replies are the same. A case is the
// fail point and the commands after it, separated by bars.
func TestFields(t *testing.T) {
	for _, c := range []struct {
		file   string
		server int
		o      embedded.Options
	}{
		{"fields", 0, embedded.Options{Topology: embedded.ReplicaSet, Members: 1}},
		{"refusals", 0, embedded.Options{Topology: embedded.ReplicaSet, Members: 1}},
		{"secondary", 1, embedded.Options{Topology: embedded.ReplicaSet, Members: 2}},
		{"standalone", 0, embedded.Options{}},
		{"mongos", 0, embedded.Options{Topology: embedded.Sharded, Mongoses: 1}},
		{"balanced", 0, embedded.Options{Topology: embedded.LoadBalanced, Mongoses: 1}},
		{"before-labels", 0, embedded.Options{Topology: embedded.ReplicaSet, Members: 1, Version: "4.2"}},
		{"overload", 0, embedded.Options{Topology: embedded.ReplicaSet, Members: 1, Version: "9.0",
			Parameters: bson.D{{Key: "externalClientBaseBackoffMS", Value: 20}}}},
	} {
		t.Run(c.file, func(t *testing.T) {
			p := newPairAt(t, c.o, c.server)
			testkit.PlayCases(t, "testdata/"+c.file+".txt", p.fields)
		})
	}
}

func (p pair) fields(t *testing.T, in string) string {
	var commands []bson.Raw
	for i, part := range strings.Split(in, " | ") {
		if i == 0 && !strings.Contains(part, `"configureFailPoint"`) {
			part = `{"configureFailPoint": "failCommand", "$db": "admin", ` + part + `}`
		}
		commands = append(commands, testkit.Extended[bson.Raw](t, part))
	}
	got := strings.Split(strings.TrimSpace(p.play(t, commands)), "\n")
	name, _ := commands[0].Index(0).Value().StringValueOK()
	p.play(t, []bson.Raw{testkit.Extended[bson.Raw](t,
		fmt.Sprintf(`{"configureFailPoint": %q, "mode": "off", "$db": "admin"}`, name))})
	var short []string
	for _, text := range got[1:] {
		short = append(short, gist(t, text))
	}
	return strings.Join(short, " | ")
}

// gist shortens a reply.
func gist(t *testing.T, text string) string {
	if !strings.HasPrefix(text, "{") {
		return text
	}
	reply := testkit.Extended[bson.Raw](t, text)
	out := "ok"
	if code, ok := reply.Lookup("code").AsInt64OK(); ok {
		out = fmt.Sprint(code)
	}
	if count, ok := reply.Lookup("n").AsInt64OK(); ok {
		out += fmt.Sprint(" n=", count)
	}
	if concern, err := reply.LookupErr("writeConcernError"); err == nil {
		out += " concern " + concern.String()
	}
	if labels, err := reply.LookupErr("errorLabels"); err == nil {
		out += " " + labels.String()
	}
	for _, field := range []string{"failpoint.failCommand", "failpoint.onPrimaryTransactionalWrite", "shardId",
		"baseBackoffMS"} {
		if v, err := reply.LookupErr(field); err == nil {
			out += " " + v.String()
		}
	}
	return out
}

// Random fail points and commands have the same replies with a deployment's own fail points and through the proxy, on
// every topology and version. UTR_SOAK=1 plays thousands.
func TestSchedules(t *testing.T) {
	random := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	for _, topology := range []embedded.Topology{embedded.Standalone, embedded.ReplicaSet, embedded.Sharded,
		embedded.LoadBalanced} {
		for _, version := range embedded.Versions() {
			o := embedded.Options{Topology: topology, Version: version, Members: 1, Mongoses: 1}
			if _, err := o.About(); err != nil {
				continue
			}
			t.Run(fmt.Sprintf("%s %s", topology, version), func(t *testing.T) {
				p := newPair(t, o)
				for range testkit.Either(os.Getenv("UTR_SOAK") != "", 200, 5) {
					p.play(t, schedule(t, random))
				}
			})
		}
	}
}

// schedule returns a fail point with a random mode and data, commands, and a command that turns it off.
func schedule(t *testing.T, random *rand.Rand) []bson.Raw {
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	names := []string{"find", "insert", "ping", "commitTransaction", "aggregate", "hello"}
	random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	code := pick("6", "7", "8", "11", "43", "50", "63", "89", "91", "112", "133", "150", "189", "234", "237", "251", "262",
		"279", "280", "358",
		"462", "9001", "10107", "11000", "11600", "11602", "13388", "13435", "13436", "123456")
	data := fmt.Sprintf(`"failCommands": ["%s"]`, strings.Join(names[:1+random.IntN(3)], `", "`))
	for _, field := range []string{
		pick("", `"errorCode": `+code, `"errorCode": `+code, `"closeConnection": true`,
			`"writeConcernError": {"code": `+code+`, "errmsg": "x"}`),
		pick("", "", "", `"errorLabels": []`, `"errorLabels": ["RetryableWriteError", "x"]`),
		pick("", "", "", `"appName": "app"`, `"appName": "other"`),
		pick("", "", "", `"namespace": "db.c"`, `"namespace": "db"`),
		pick("", "", "", "", `"blockConnection": true, "blockTimeMS": 2`, `"blockConnection": true`),
	} {
		if field != "" {
			data += ", " + field
		}
	}
	mode := pick(`"alwaysOn"`, `{"times": 1}`, `{"times": 2}`, `{"skip": 1}`, `{"activationProbability": 1}`,
		`{"activationProbability": 0}`, `"off"`)
	commands := []string{fmt.Sprintf(`{"configureFailPoint": "failCommand", "$db": "admin", "mode": %s, "data": {%s}}`,
		mode, data)}
	var session string
	for range 1 + random.IntN(4) {
		if session == "" || random.IntN(2) == 0 {
			session = fmt.Sprintf(`"lsid": {"id": {"$uuid": "00000000-0000-4000-8000-%012x"}}`, random.Int64N(1<<48))
		}
		number := fmt.Sprintf(`, %s, "txnNumber": {"$numberLong": "%d"}`, session, 1+random.IntN(3))
		commands = append(commands, pick(`{"ping": 1}`, `{"find": "c", "filter": {"a": 1}}`,
			`{"find": "c", "filter": {"a": 1}, "maxTimeMS": 60000}`,
			`{"insert": "c", "documents": [{"_id": 1}]}`, `{"insert": "c", "documents": [{}]`+number+`}`,
			`{"insert": "t", "documents": [{}], "startTransaction": true, "autocommit": false`+number+`}`,
			`{"commitTransaction": 1, "$db": "admin", "autocommit": false`+number+`}`,
			`{"aggregate": "c", "pipeline": [{"$match": {"a": 1}}], "cursor": {}}`,
			`{"delete": "c", "deletes": [{"q": {}, "limit": 1}], "writeConcern": {"w": 1}}`, `{"hello": 1}`))
	}
	commands = append(commands, `{"configureFailPoint": "failCommand", "$db": "admin", "mode": "off"}`,
		`{"killAllSessions": []}`)
	var all []bson.Raw
	for _, c := range commands {
		all = append(all, testkit.Extended[bson.Raw](t, c))
	}
	return all
}
