package reference_test

import (
	"bufio"
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/reference"
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
// official drivers send for the same operations, message by message, through
// taps on the wire. PyMongo takes part if UTR_PYTHON names a python that has
// it.
func TestWireLikeTheOfficialDrivers(t *testing.T) {
	table := goDifferences()
	python := os.Getenv("UTR_PYTHON")
	if python != "" {
		table = append(table, pythonDifferences()...)
	}
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
		{"replicaset", embedded.Options{Topology: embedded.ReplicaSet}, -1, []string{"timeoutMS", "causal"}},
		{"replicaset 4.9", embedded.Options{Topology: embedded.ReplicaSet, Version: "4.9"}, -1, nil},
		{"replicaset auth", embedded.Options{Topology: embedded.ReplicaSet, Users: []embedded.User{{Name: "u", Password: "p"}}}, -1, nil},
		{"direct primary", embedded.Options{Topology: embedded.ReplicaSet}, 0, nil},
		{"direct secondary", embedded.Options{Topology: embedded.ReplicaSet}, 1, nil},
		{"sharded", embedded.Options{Topology: embedded.Sharded}, -1, []string{"default"}},
		{"load-balanced", embedded.Options{Topology: embedded.LoadBalanced}, -1, nil},
	} {
		d, err := embedded.Start(context.Background(), dep.options)
		if err != nil {
			t.Fatal(err)
		}
		seed(t, d.URI())
		cleaner, err := mongo.Connect(options.Client().ApplyURI(d.URI()))
		if err != nil {
			t.Fatal(err)
		}
		clean := func() { // so that all begin with the same contents
			db := cleaner.Database("db")
			if _, err := db.Collection("coll").DeleteMany(context.Background(), doc("_id", doc("$gte", 10))); err != nil {
				t.Error(err)
			}
			_ = db.Collection("made").Drop(context.Background())
			_ = db.Collection("coll").Indexes().DropOne(context.Background(), "a_1")
		}
		u, err := url.Parse(d.URI())
		if err != nil {
			t.Fatal(err)
		}
		hosts, base := d.Hosts(), d.URI()
		if dep.options.Topology == embedded.LoadBalanced {
			hosts = []string{u.Host}
		}
		if dep.direct >= 0 {
			base = d.DirectURI(hosts[dep.direct])
		}
		for _, v := range wireVariants() {
			ops := slices.DeleteFunc(wireOps(), func(o wireOp) bool {
				// What a secondary refuses is retried until it is known again.
				return o.writes && dep.name == "direct secondary"
			})
			p := tap(t, hosts)
			uri, where := p.uri(base), dep.name+"/"+v.name
			if v.uri != "" {
				uri += map[bool]string{true: "&", false: "?"}[strings.Contains(uri, "?")] + v.uri
			}
			ours := runOurs(t, p, uri, v, ops)
			clean()
			found = append(found, compare("go", where, ours, runOfficial(t, p, uri, v, ops))...)
			clean()
			if python != "" && slices.Contains(dep.python, v.name) {
				found = append(found, compare("pymongo", where, ours, runPython(t, python, p, uri, v, ops))...)
			}
			clean()
			compared += len(ours)
		}
		_ = cleaner.Disconnect(context.Background())
		_ = d.Close()
	}
	unexplained, unused := judge(found, table)
	for _, d := range unexplained {
		t.Errorf("unexplained: %v", d)
	}
	for _, e := range unused {
		t.Errorf("there is no such difference any more: %+v", e)
	}
	t.Logf("%d operations compared, %d differences", compared, len(found))
}

func seed(t testing.TB, uri string) {
	t.Helper()
	c, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Disconnect(context.Background()) }()
	var docs []any
	for i := range 5 {
		docs = append(docs, bson.D{{Key: "_id", Value: i}})
	}
	if _, err := c.Database("db").Collection("coll").InsertMany(context.Background(), docs); err != nil {
		t.Fatal(err)
	}
}

// traffic is what a client sent, by operation.
type traffic map[string][]message

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

func names(ms []message) string {
	var out []string
	for _, m := range ms {
		out = append(out, m.name())
	}
	return strings.Join(out, " ")
}

// differ compares two messages of the same command.
func differ(a, b message) []difference {
	out := []difference{}
	note := func(field, ours, theirs string) {
		if ours != theirs {
			out = append(out, difference{command: a.name(), field: field, ours: cmp.Or(ours, "-"), theirs: cmp.Or(theirs, "-")})
		}
	}
	note("message", fmt.Sprintf("opcode %d flags %d", a.opcode, a.flags), fmt.Sprintf("opcode %d flags %d", b.opcode, b.flags))
	note("command", a.name(), b.name())
	fa, fb := fields(a.body), fields(b.body)
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
func fields(b bson.Raw) map[string]string {
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

// application leaves out what establishes and monitors connections, of which
// it checks what monitors must not send.
func application(t *testing.T, ms []message) []message {
	var out []message
	for _, m := range ms {
		switch m.name() {
		case "hello", "isMaster", "ismaster":
			_, gossip := m.body.LookupErr("$clusterTime")
			if _, err := m.body.LookupErr("topologyVersion"); err == nil && gossip == nil {
				t.Errorf("a monitor gossips the cluster time: %v", m.body)
			}
		case "saslStart", "saslContinue":
		default:
			out = append(out, m)
		}
	}
	return out
}

func runOurs(t *testing.T, p *taps, uri string, v wireVariant, ops []wireOp) traffic {
	t.Helper()
	e, err := reference.New(reference.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	begun, err := e.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{begun, t}
	clientOptions := bson.D{}
	if v.api {
		clientOptions = doc("serverApi", doc("version", "1", "deprecationErrors", true))
	}
	s.entity(uri, "client", "client", clientOptions)
	s.entity(uri, "database", "database", doc("client", "client", "databaseName", "db"))
	s.entity(uri, "collection", "collection", doc("database", "database", "collectionName", "coll"))
	if v.session != "" {
		s.entity(uri, "session", "session", doc("client", "client", "sessionOptions", map[string]bson.D{
			"causal": {}, "notCausal": doc("causalConsistency", false), "snapshot": doc("snapshot", true)}[v.session]))
	}
	out := traffic{}
	for _, op := range ops {
		args := slices.Clone(op.args)
		switch {
		case op.transaction != "":
			args = append(args, bson.E{Key: "session", Value: op.name})
			s.entity(uri, "session", op.name, doc("client", "client"))
			s.do(op.name, "startTransaction", nil)
		case v.session != "":
			args = append(args, bson.E{Key: "session", Value: "session"})
		}
		save := map[bool]string{true: op.name}[op.save]
		o := s.Do(ctx, engine.Operation{Object: op.object, Name: op.operation, Arguments: must(bson.Marshal(append(bson.D{}, args...))), SaveAs: save})
		if o.Err != nil && o.Err.Unsupported != "" {
			t.Fatalf("%s: %v", op.name, o.Err)
		}
		if save != "" && o.Err == nil {
			_ = s.Close(ctx, save)
		}
		if op.transaction != "" {
			s.do(op.name, op.transaction, nil)
			s.do(op.name, "endSession", nil)
		}
		out[op.name] = application(t, p.take())
	}
	_ = s.End(ctx)
	out["close"] = application(t, p.take())
	return out
}

func runOfficial(t *testing.T, p *taps, uri string, v wireVariant, ops []wireOp) traffic {
	t.Helper()
	o := options.Client().ApplyURI(uri)
	if v.api {
		o.SetServerAPIOptions(options.ServerAPI("1").SetDeprecationErrors(true))
	}
	c, err := mongo.Connect(o)
	if err != nil {
		t.Fatal(err)
	}
	plain := context.Background()
	if v.uri != "timeoutMS=60000" { // a deadline counts as timeoutMS
		var cancel context.CancelFunc
		plain, cancel = context.WithCancel(plain)
		defer cancel()
		defer time.AfterFunc(time.Minute, cancel).Stop()
	}
	ctx, end := plain, func() {}
	if v.session != "" {
		so := map[string]*options.SessionOptionsBuilder{"causal": options.Session(),
			"notCausal": options.Session().SetCausalConsistency(false), "snapshot": options.Session().SetSnapshot(true)}[v.session]
		s, err := c.StartSession(so)
		if err != nil {
			t.Fatal(err)
		}
		ctx, end = mongo.NewSessionContext(plain, s), func() { s.EndSession(plain) }
	}
	db := c.Database("db")
	out := traffic{}
	for _, op := range ops {
		in := ctx
		if op.transaction != "" {
			in = plain
		}
		op.theirs(in, official{c, db, db.Collection("coll")})
		out[op.name] = application(t, p.take())
	}
	end()
	_ = c.Disconnect(plain)
	out["close"] = application(t, p.take())
	return out
}

//go:embed testdata/wire.py
var pythonScript string

// runPython has PyMongo perform the operations: it names each when it is
// done, and goes on when it is told to.
func runPython(t *testing.T, python string, p *taps, uri string, v wireVariant, ops []wireOp) traffic {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var list []string
	for _, op := range ops {
		list = append(list, op.name)
	}
	cmd := exec.CommandContext(ctx, python, "-c", pythonScript, uri, v.session, fmt.Sprint(v.api), strings.Join(list, ","))
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
		out[lines.Text()] = application(t, p.take())
		_, _ = fmt.Fprintln(in, "go")
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, &complaint)
	}
	return out
}

// sample is a message with each kind of field.
func sample() message {
	return message{opcode: opMsg, body: must(bson.Marshal(doc("find", "coll", "filter", doc("a", int32(1)), "limit", int64(2),
		"lsid", doc("id", bson.Binary{Subtype: 4, Data: make([]byte, 16)}), "maxTimeMS", int64(5), "txnNumber", int64(1),
		"readConcern", doc("level", "majority", "afterClusterTime", bson.Timestamp{T: 1}),
		"$readPreference", doc("mode", "nearest"), "cursors", bson.A{int64(1)}, "$db", "db")))}
}

// TestWireNoticesMutations breaks a message in every way that a driver could
// get wrong.
func TestWireNoticesMutations(t *testing.T) {
	whole := sample()
	if d := differ(whole, sample()); len(d) != 0 {
		t.Fatalf("a message differs from itself: %v", d)
	}
	mutant := func(name string, m message) {
		if len(differ(whole, m)) == 0 || len(differ(m, whole)) == 0 {
			t.Errorf("%s is not noticed", name)
		}
	}
	var d bson.D
	if err := bson.Unmarshal(whole.body, &d); err != nil {
		t.Fatal(err)
	}
	body := func(d bson.D) message { m := whole; m.body = must(bson.Marshal(d)); return m }
	for i, e := range d {
		mutant(e.Key+" dropped", body(slices.Delete(slices.Clone(d), i, i+1)))
		mutant(e.Key+" twice", body(append(slices.Clone(d), e)))
		for name, to := range map[string]bson.E{
			"renamed": {Key: e.Key + "x", Value: e.Value}, "retyped": {Key: e.Key, Value: bson.MinKey{}},
			"nested": {Key: e.Key, Value: doc("x", e.Value)}} {
			m := slices.Clone(d)
			m[i] = to
			mutant(e.Key+" "+name, body(m))
		}
	}
	for name, to := range map[string]bson.D{
		"a filter's value":      doc("filter", doc("a", int32(2))),
		"a filter's type":       doc("filter", doc("a", int64(1))),
		"a limit":               doc("limit", int64(3)),
		"a level":               doc("readConcern", doc("level", "local", "afterClusterTime", bson.Timestamp{T: 1})),
		"no afterClusterTime":   doc("readConcern", doc("level", "majority")),
		"a mode":                doc("$readPreference", doc("mode", "primary")),
		"an int32 transaction":  doc("txnNumber", int32(1)),
		"cursors of int32":      doc("cursors", bson.A{int32(1)}),
		"a field that is added": doc("comment", "x"),
	} {
		m := slices.DeleteFunc(slices.Clone(d), func(e bson.E) bool { return e.Key == to[0].Key })
		mutant(name, body(append(m, to...)))
	}
	flags, opcode, order := whole, whole, slices.Clone(d)
	flags.flags, opcode.opcode = 2, opQuery
	mutant("moreToCome", flags)
	mutant("another opcode", opcode)
	slices.Reverse(order)
	mutant("another command at the front", body(order))
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
	ours, theirs := traffic{"find": {sample()}}, traffic{"find": {sample(), sample()}}
	if d := compare("go", "", ours, theirs); len(d) != 1 || d[0].field != "commands" {
		t.Errorf("a message too many: %v", d)
	}
}
