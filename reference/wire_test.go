package reference

import (
	"bufio"
	"cmp"
	_ "embed"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// wireVariant is a way to open the client, and the session that every
// operation is given.
type wireVariant struct {
	name    string
	uri     string
	session string // "", causal, notCausal, snapshot
	api     bool
}

func wireVariants() []wireVariant {
	return []wireVariant{
		{"default", "", "", false},
		{"secondaryPreferred", "readPreference=secondaryPreferred", "", false},
		{"tags", "readPreference=secondaryPreferred&readPreferenceTags=dc:ny&readPreferenceTags=", "", false},
		{"nearest", "readPreference=nearest&maxStalenessSeconds=120", "", false},
		{"concerns", "readConcernLevel=majority&w=majority&journal=true", "", false},
		{"timeoutMS", "timeoutMS=60000", "", false},
		{"api", "", "", true},
		{"causal", "", "causal", false},
		{"notCausal", "readConcernLevel=local", "notCausal", false},
		{"snapshot", "", "snapshot", false},
		{"retriesOff", "retryReads=false&retryWrites=false", "", false},
	}
}

// explanation says why the messages of two drivers may differ. Patterns are
// matched against the whole of a field; "" matches all.
type explanation struct {
	driver, where, op, command, field, ours, theirs string
	right                                           string // reference, driver, or both
	section                                         string
	reason                                          string
}

// difference is one between the messages of the reference engine and those of
// an official driver. The field "commands" stands for the whole sequence of
// commands, "message" for what surrounds the command.
type difference struct {
	driver, where, op, command, field, ours, theirs string
}

func (d difference) String() string {
	return fmt.Sprintf("%s, %s of %s: %s is %s, that of the driver %s (%s)", d.op, cmp.Or(d.command, "-"), d.driver, d.field, d.ours, d.theirs, d.where)
}

func (e explanation) covers(d difference) bool {
	for _, p := range [][2]string{{e.driver, d.driver}, {e.where, d.where}, {e.op, d.op}, {e.command, d.command},
		{e.field, d.field}, {e.ours, d.ours}, {e.theirs, d.theirs}} {
		if p[0] != "" && !regexp.MustCompile("^(?:"+p[0]+")$").MatchString(p[1]) {
			return false
		}
	}
	return true
}

// judge sorts differences by whether they are explained, and finds the
// explanations of none. Every difference counts for the first that covers it.
func judge(found []difference, table []explanation) (unexplained []difference, unused []explanation) {
	used := make([]bool, len(table))
	for _, d := range found {
		i := slices.IndexFunc(table, func(e explanation) bool { return e.covers(d) })
		if i < 0 {
			unexplained = append(unexplained, d)
			continue
		}
		used[i] = true
	}
	for i, e := range table {
		if !used[i] {
			unused = append(unused, e)
		}
	}
	return unexplained, unused
}

// TestWireLikeTheOfficialDrivers compares what the reference engine and
// official drivers send for the same operations, message by message.
func TestWireLikeTheOfficialDrivers(t *testing.T) {
	table := goDifferences()
	var found []difference
	compared := 0
	for _, dep := range []struct {
		name    string
		options embedded.Options
		direct  int // member to connect to directly; -1: all
		// python is the variants for PyMongo, which needs a process for each.
		python []string
	}{
		{"single", embedded.Options{}, -1, nil},
		{"replicaset", embedded.Options{Topology: embedded.ReplicaSet}, -1, nil},
		{"replicaset 4.9", embedded.Options{Topology: embedded.ReplicaSet, Version: "4.9"}, -1, nil},
		{"replicaset auth", embedded.Options{Topology: embedded.ReplicaSet, Users: []embedded.User{{Name: "u", Password: "p"}}}, -1, nil},
		{"direct primary", embedded.Options{Topology: embedded.ReplicaSet}, 0, []string{"timeoutMS", "causal"}},
		{"direct secondary", embedded.Options{Topology: embedded.ReplicaSet}, 1, nil},
		{"sharded", embedded.Options{Topology: embedded.Sharded, Mongoses: 1}, -1, []string{"default"}},
		{"load-balanced", embedded.Options{Topology: embedded.LoadBalanced}, -1, nil},
	} {
		deployment, err := embedded.Start(t.Context(), dep.options)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = deployment.Close() }()
		uri := deployment.URI()
		cleaner, err := mongo.Connect(options.Client().ApplyURI(uri))
		if err != nil {
			t.Fatal(err)
		}
		five := bson.A{d("_id", 0), d("_id", 1), d("_id", 2), d("_id", 3), d("_id", 4)}
		clean := func() { // so that all begin with the same contents
			db := cleaner.Database("db")
			_ = db.Drop(t.Context())
			if _, err := db.Collection("coll").InsertMany(t.Context(), five); err != nil {
				t.Error(err)
			}
		}
		ops := append(wireReads(), wireWrites()...)
		if dep.direct >= 0 {
			uri = deployment.DirectURI(deployment.Hosts()[dep.direct])
		}
		if dep.name == "direct secondary" { // what it refuses is retried until it is known again
			ops = wireReads()
		}
		for _, v := range wireVariants() {
			p, uri, where := &tap{t: t}, uri, dep.name+"/"+v.name
			if v.uri != "" {
				uri += map[bool]string{true: "&", false: "?"}[strings.Contains(uri, "?")] + v.uri
			}
			clean()
			ours := runOurs(t, p, uri, v, ops)
			clean()
			found = append(found, compare("go", where, ours, runOfficial(t, p, uri, v, ops))...)
			if slices.Contains(dep.python, v.name) {
				clean()
				t.Run("pymongo "+where, func(t *testing.T) {
					python := testkit.Python(t, "pymongo")
					if len(table) == len(goDifferences()) {
						table = append(table, pythonDifferences()...)
					}
					host := deployment.Hosts()[max(dep.direct, 0)]
					theirs := runPython(t, python, p, strings.Replace(uri, host, p.listen(host), 1), v, ops)
					found = append(found, compare("pymongo", where, ours, theirs)...)
				})
			}
			compared += len(ours)
		}
		_ = cleaner.Disconnect(t.Context())
	}
	unexplained, unused := judge(found, table)
	for _, d := range unexplained {
		t.Errorf("unexplained: %v", d)
	}
	for _, e := range unused {
		t.Errorf("this difference is not met any more: %+v", e)
	}
	t.Logf("%d operations compared, %d differences", compared, len(found))
}

// traffic is what a client sent, by operation.
type traffic map[string][]sent

// compare gives the differences of all operations that both performed.
func compare(driver, where string, ours, theirs traffic) []difference {
	var out []difference
	for op, a := range ours {
		b, ok := theirs[op]
		if !ok {
			continue
		}
		if x, y := names(a), names(b); x != y {
			out = append(out, difference{driver, where, op, "", "commands", x, y})
			continue
		}
		for i := range a {
			for _, d := range differ(a[i], b[i]) {
				d.driver, d.where, d.op = driver, where, op
				out = append(out, d)
			}
		}
	}
	slices.SortFunc(out, func(a, b difference) int { return cmp.Compare(a.String(), b.String()) })
	return out
}

func names(ms []sent) string {
	var out []string
	for _, m := range ms {
		out = append(out, m.name())
	}
	return strings.Join(out, " ")
}

// differ compares two messages of the same command.
func differ(a, b sent) []difference {
	out := []difference{}
	note := func(field, ours, theirs string) {
		if ours != theirs {
			out = append(out, difference{command: a.name(), field: field, ours: cmp.Or(ours, "-"), theirs: cmp.Or(theirs, "-")})
		}
	}
	note("message", fmt.Sprintf("opcode %d flags %d", a.opcode, a.flags), fmt.Sprintf("opcode %d flags %d", b.opcode, b.flags))
	note("command", a.name(), b.name())
	fa, fb := fieldsOf(a.body), fieldsOf(b.body)
	keys := map[string]bool{}
	for k := range fa {
		keys[k] = true
	}
	for k := range fb {
		keys[k] = true
	}
	for k := range keys {
		note(k, fa[k], fb[k])
	}
	return out
}

// volatile are the fields of which only the shape is compared, since each
// client and each moment has its own values.
func volatile(field string) bool {
	switch field {
	case "lsid", "$clusterTime", "maxTimeMS", "getMore", "cursors", "txnNumber", "endSessions", "recoveryToken", "afterClusterTime", "atClusterTime":
		return true
	}
	return false
}

// fields writes each field of a command as text.
func fieldsOf(b bson.Raw) map[string]string {
	out := map[string]string{}
	es, err := b.Elements()
	if err != nil {
		return map[string]string{"bad": err.Error()}
	}
	for _, e := range es {
		out[e.Key()] += text(e.Value(), volatile(e.Key())) // a field that stands twice is seen
	}
	return out
}

// text writes a value; of a volatile one, types and names only.
func text(v bson.RawValue, hidden bool) string {
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		var parts []string
		es, _ := v.Document().Elements()
		for _, e := range es {
			parts = append(parts, e.Key()+": "+text(e.Value(), hidden || volatile(e.Key())))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case bson.TypeArray:
		var parts []string
		values, _ := v.Array().Values()
		for _, e := range values {
			part := text(e, hidden)
			if hidden && len(parts) > 0 && parts[0] == part {
				continue // how many there are is volatile, too
			}
			parts = append(parts, part)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	if hidden {
		return v.Type.String()
	}
	return v.String()
}

func runOurs(t *testing.T, p *tap, uri string, v wireVariant, ops []wireOp) traffic {
	t.Helper()
	entity := d()
	if v.api {
		entity = d("serverApi", d("version", "1", "deprecationErrors", true))
	}
	b := open(t, uri, Options{dial: p.DialContext}, entity)
	if v.session != "" {
		b.entity("session", "session", d("client", "client", "sessionOptions", map[string]bson.D{
			"causal": {}, "notCausal": d("causalConsistency", false), "snapshot": d("snapshot", true)}[v.session]))
	}
	out := traffic{}
	for _, op := range ops {
		text := op.ours
		if v.session != "" && op.how != "commit" && op.how != "abort" {
			text = "@" + text
		}
		switch op.how {
		case "save":
			if out := b.perform(text); out.Err == nil {
				_ = b.Close(t.Context(), "saved")
			}
		case "commit", "abort":
			b.entity("session", op.name, d("client", "client"))
			b.do(op.name, "startTransaction", nil)
			b.perform("@"+text, bson.E{Key: "session", Value: op.name})
			b.do(op.name, op.how+"Transaction", nil)
			b.do(op.name, "endSession", nil)
		default:
			if o := b.perform(text); o.Err != nil && o.Err.Unsupported != "" {
				t.Fatalf("%s: %v", op.name, o.Err)
			}
		}
		out[op.name] = p.take()
	}
	_ = b.End(t.Context())
	out["close"] = p.take()
	return out
}

func runOfficial(t *testing.T, p *tap, uri string, v wireVariant, ops []wireOp) traffic {
	t.Helper()
	o := options.Client().ApplyURI(uri).SetDialer(p)
	if v.api {
		o.SetServerAPIOptions(options.ServerAPI("1").SetDeprecationErrors(true))
	}
	c, err := mongo.Connect(o)
	if err != nil {
		t.Fatal(err)
	}
	plain, ctx, end := t.Context(), t.Context(), func() {} // without a deadline, which would count as timeoutMS
	if v.session != "" {
		s, err := c.StartSession(map[string]*options.SessionOptionsBuilder{"causal": options.Session(),
			"notCausal": options.Session().SetCausalConsistency(false), "snapshot": options.Session().SetSnapshot(true)}[v.session])
		if err != nil {
			t.Fatal(err)
		}
		ctx, end = mongo.NewSessionContext(plain, s), func() { s.EndSession(plain) }
	}
	out := traffic{}
	for _, op := range ops {
		in := ctx
		if op.how == "commit" || op.how == "abort" {
			in = plain
		}
		op.theirs(official{in, c, c.Database("db"), c.Database("db").Collection("coll")})
		out[op.name] = p.take()
	}
	end()
	_ = c.Disconnect(plain)
	out["close"] = p.take()
	return out
}

//go:embed testdata/wire.py
var pythonScript string

// runPython has PyMongo perform the operations: it names each when it is
// done, and goes on when it is told to.
func runPython(t *testing.T, python string, p *tap, uri string, v wireVariant, ops []wireOp) traffic {
	t.Helper()
	var list []string
	for _, op := range ops {
		list = append(list, op.name)
	}
	cmd := exec.CommandContext(testkit.Context(t), python, "-c", pythonScript, uri, v.session, fmt.Sprint(v.api), strings.Join(list, ","))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var complaint strings.Builder
	cmd.Stderr = &complaint
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out := traffic{}
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		out[lines.Text()] = p.take()
		_, _ = fmt.Fprintln(in, "go")
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, &complaint)
	}
	return out
}

// TestWireNoticesMutations breaks a message with each kind of field in every way
// that a driver could get wrong.
func TestWireNoticesMutations(t *testing.T) {
	const text = `{"find":"coll","filter":{"a":1},"limit":{"$numberLong":"2"},"lsid":{"id":{"$binary":{"base64":"AAAA","subType":"00"}}},
		"maxTimeMS":{"$numberLong":"5"},"txnNumber":{"$numberLong":"1"},"readConcern":{"level":"majority","afterClusterTime":{"$timestamp":{"t":1,"i":1}}},
		"$readPreference":{"mode":"nearest"},"cursors":[{"$numberLong":"1"}],"$db":"db"}`
	fields := parsed(t, text)
	body := func(fields bson.D) sent { return sent{opcode: msg, body: raw(t, fields)} }
	whole := body(fields)
	if d := differ(whole, body(parsed(t, text))); len(d) != 0 {
		t.Fatalf("a message differs from itself: %v", d)
	}
	mutant := func(name string, m sent) {
		if len(differ(whole, m)) == 0 || len(differ(m, whole)) == 0 {
			t.Errorf("%s is not noticed", name)
		}
	}
	with := func(i int, e bson.E) sent {
		changed := slices.Clone(fields)
		changed[i] = e
		return body(changed)
	}
	for i, e := range fields {
		mutant(e.Key+" dropped", body(slices.Delete(slices.Clone(fields), i, i+1)))
		mutant(e.Key+" twice", body(append(slices.Clone(fields), e)))
		mutant(e.Key+" renamed", with(i, bson.E{Key: e.Key + "x", Value: e.Value}))
		mutant(e.Key+" of another type", with(i, bson.E{Key: e.Key, Value: bson.MinKey{}}))
		mutant(e.Key+" nested", with(i, bson.E{Key: e.Key, Value: d("x", e.Value)}))
	}
	for _, json := range []string{`{"filter":{"a":2}}`, `{"filter":{"a":{"$numberLong":"1"}}}`, `{"limit":{"$numberLong":"3"}}`,
		`{"readConcern":{"level":"local","afterClusterTime":{"$timestamp":{"t":1,"i":1}}}}`, `{"readConcern":{"level":"majority"}}`,
		`{"$readPreference":{"mode":"primary"}}`, `{"txnNumber":1}`, `{"cursors":[1]}`, `{"comment":"x"}`} {
		e := parsed(t, json)[0]
		if i := slices.IndexFunc(fields, func(f bson.E) bool { return f.Key == e.Key }); i >= 0 {
			mutant(json, with(i, e))
		} else {
			mutant(json, body(append(slices.Clone(fields), e)))
		}
	}
	mutant("moreToCome", sent{opcode: msg, flags: 2, body: whole.body})
	mutant("another opcode", sent{opcode: query, body: whole.body})
	slices.Reverse(fields)
	mutant("another command at the front", body(fields))
	if d := compare("go", "", traffic{"find": {whole}}, traffic{"find": {whole, whole}}); len(d) != 1 || d[0].field != "commands" {
		t.Errorf("a message too many: %v", d)
	}
}

func TestWireJudgesDifferences(t *testing.T) {
	found := []difference{{"go", "single/api", "find", "find", "limit", "1", "2"}}
	for _, c := range []struct {
		why                 string
		table               []explanation
		unexplained, unused int
	}{
		{"nothing explains it", nil, 1, 0},
		{"explained by its field", []explanation{{field: "limit"}}, 0, 0},
		{"every field counts", []explanation{{field: "limit", theirs: "3"}}, 1, 1},
		{"a pattern matches the whole of a field", []explanation{{field: "li"}}, 1, 1},
		{"of another driver", []explanation{{driver: "pymongo", field: "limit"}}, 1, 1},
		{"of another deployment", []explanation{{where: "sharded/.*"}}, 1, 1},
		{"the second is of no use", []explanation{{op: "find"}, {field: "limit"}}, 0, 1},
	} {
		unexplained, unused := judge(found, c.table)
		if len(unexplained) != c.unexplained || len(unused) != c.unused {
			t.Errorf("%s: %d unexplained, %d unused", c.why, len(unexplained), len(unused))
		}
	}
}
