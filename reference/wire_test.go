package reference_test

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
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

// The operations that both drivers perform; each is run on its own.
var wireOps = []string{"find", "findBatches", "findLimit", "findNegative", "findOne", "aggregate", "aggregateDatabase", "countDocuments",
	"estimatedDocumentCount", "distinct", "listDatabases", "listDatabaseNames", "listCollections",
	"listCollectionNames", "listIndexes", "watch", "watchDatabase", "watchClient", "cursorClose", "runCommand", "runCursorCommand", "out"}

var wireVariants = []struct {
	name    string
	uri     string
	session string
	api     bool
}{
	{"default", "", "", false},
	{"secondaryPreferred", "readPreference=secondaryPreferred", "", false},
	{"tags", "readPreference=secondaryPreferred&readPreferenceTags=dc:ny&readPreferenceTags=", "", false},
	{"nearest", "readPreference=nearest&maxStalenessSeconds=120", "", false},
	{"majority", "readConcernLevel=majority", "", false},
	{"timeoutMS", "timeoutMS=10000", "", false},
	{"api", "", "", true},
	{"causal", "", "causal", false},
	{"notCausal", "readConcernLevel=local", "notCausal", false},
	{"snapshot", "", "snapshot", false},
	{"retryReadsOff", "retryReads=false", "", false},
}

func TestWireLikeTheOfficialDriver(t *testing.T) {
	all := map[string][]string{}
	for _, dep := range []struct {
		name    string
		options embedded.Options
		direct  int // member to connect to directly; -1: all
	}{
		{"single", embedded.Options{}, -1},
		{"replicaset", embedded.Options{Topology: embedded.ReplicaSet}, -1},
		{"replicaset 4.9", embedded.Options{Topology: embedded.ReplicaSet, Version: "4.9"}, -1},
		{"replicaset auth", embedded.Options{Topology: embedded.ReplicaSet, Users: []embedded.User{{Name: "u", Password: "p"}}}, -1},
		{"direct primary", embedded.Options{Topology: embedded.ReplicaSet}, 0},
		{"direct secondary", embedded.Options{Topology: embedded.ReplicaSet}, 1},
		{"sharded", embedded.Options{Topology: embedded.Sharded}, -1},
		{"load-balanced", embedded.Options{Topology: embedded.LoadBalanced}, -1},
	} {
		d, err := embedded.Start(context.Background(), dep.options)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		seed(t, d.URI())
		u, _ := url.Parse(d.URI())
		hosts := d.Hosts()
		if dep.options.Topology == embedded.LoadBalanced {
			hosts = []string{u.Host}
		}
		base := d.URI()
		if dep.direct >= 0 {
			base = d.DirectURI(hosts[dep.direct])
		}
		for _, v := range wireVariants {
			p := tap(t, hosts)
			uri := p.uri(base)
			if v.uri != "" {
				if strings.Contains(uri, "?") {
					uri += "&" + v.uri
				} else {
					uri += "?" + v.uri
				}
			}
			ours := runOurs(t, p, uri, v.session, v.api)
			theirs := runTheirs(t, p, uri, v.session, v.api)
			report(all, "go", dep.name+"/"+v.name, ours, theirs)
			if py := os.Getenv("PY"); py != "" {
				theirs = runPython(t, py, p, uri, v.session, v.api)
				report(all, "py", dep.name+"/"+v.name, ours, theirs)
			}
		}
	}
	keys := []string{}
	for k := range all {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		n := len(all[k])
		fmt.Println(k, "  ##", n, all[k][:min(n, 8)])
	}
}

func seed(t *testing.T, uri string) {
	c, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Disconnect(context.Background())
	docs := []any{}
	for i := range 5 {
		docs = append(docs, bson.D{{Key: "_id", Value: i}})
	}
	if _, err := c.Database("db").Collection("coll").InsertMany(context.Background(), docs); err != nil {
		t.Fatal(err)
	}
}

func report(all map[string][]string, who, where string, ours, theirs map[string][]message) {
	ops := append(slices.Clone(wireOps), "close", "handshake")
	for _, op := range ops {
		a, b := ours[op], theirs[op]
		if op == "handshake" {
			for _, m := range a {
				k := fmt.Sprintf("HS ours %d flags %d %s", m.opcode, m.flags, shape(m.body))
				all[k] = append(all[k], where)
			}
			for _, m := range b {
				k := fmt.Sprintf("HS %s %d flags %d %s", who, m.opcode, m.flags, shape(m.body))
				all[k] = append(all[k], where)
			}
			continue
		}
		var an, bn []string
		for _, m := range a {
			an = append(an, m.name())
		}
		for _, m := range b {
			bn = append(bn, m.name())
		}
		if !slices.Equal(an, bn) {
			k := fmt.Sprintf("%s %s: commands ours %v theirs %v", who, op, an, bn)
			all[k] = append(all[k], where)
			continue
		}
		for i := range a {
			for _, d := range differ(a[i], b[i]) {
				k := fmt.Sprintf("%s %s %s: %s", who, op, an[i], d)
				all[k] = append(all[k], where)
			}
		}
	}
}

func differ(a, b message) []string {
	var out []string
	if a.flags != b.flags || a.opcode != b.opcode || a.sequences != b.sequences {
		out = append(out, fmt.Sprintf("flags ours %d theirs %d; opcode %d %d; sequences %d %d", a.flags, b.flags, a.opcode, b.opcode, a.sequences, b.sequences))
	}
	fa, fb := fields(a.body), fields(b.body)
	keys := map[string]bool{}
	for k := range fa {
		keys[k] = true
	}
	for k := range fb {
		keys[k] = true
	}
	for k := range keys {
		if fa[k] != fb[k] {
			out = append(out, fmt.Sprintf("%s ours %s theirs %s", k, orNone(fa[k]), orNone(fb[k])))
		}
	}
	slices.Sort(out)
	return out
}

func orNone(s string) string { return cmp.Or(s, "-") }

func shape(b bson.Raw) string {
	f := fields(b)
	var out []string
	es, _ := b.Elements()
	for _, e := range es {
		out = append(out, e.Key()+"="+f[e.Key()])
	}
	return strings.Join(out, " ")
}

func fields(b bson.Raw) map[string]string {
	out := map[string]string{}
	es, err := b.Elements()
	if err != nil {
		return map[string]string{"bad": err.Error()}
	}
	for _, e := range es {
		v := e.Value()
		switch e.Key() {
		case "lsid", "$clusterTime":
			d, _ := v.DocumentOK()
			ks := ""
			kes, _ := d.Elements()
			for _, k := range kes {
				ks += k.Key() + ":" + k.Value().Type.String() + ","
			}
			out[e.Key()] = ks
		case "readConcern":
			d, _ := v.DocumentOK()
			ks := ""
			kes, _ := d.Elements()
			for _, k := range kes {
				ks += k.Key() + ":"
				if k.Key() == "level" {
					ks += k.Value().String()
				} else {
					ks += k.Value().Type.String()
				}
				ks += ","
			}
			out[e.Key()] = ks
		case "maxTimeMS", "getMore", "cursors", "topologyVersion", "speculativeAuthenticate", "payload", "sessions", "endSessions":
			out[e.Key()] = v.Type.String()
		case "txnNumber":
			out[e.Key()] = v.Type.String()
		case "client":
			d, _ := v.DocumentOK()
			ks := ""
			kes, _ := d.Elements()
			for _, k := range kes {
				ks += k.Key() + ","
			}
			out[e.Key()] = ks
		default:
			s := v.String()
			out[e.Key()] = s
		}
	}
	return out
}

func application(ms []message) (app, hs []message) {
	for _, m := range ms {
		switch m.name() {
		case "hello", "isMaster", "ismaster", "saslStart", "saslContinue":
			hs = append(hs, m)
		default:
			app = append(app, m)
		}
	}
	return
}

func runOurs(t *testing.T, p *taps, uri, session string, api bool) map[string][]message {
	e, err := reference.New(reference.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ctx := context.Background()
	te, err := e.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	open := func(kind, id string, o bson.D) {
		t.Helper()
		r, _ := bson.Marshal(append(bson.D{{Key: "id", Value: id}}, o...))
		if err := te.Open(ctx, engine.Entity{Kind: kind, ID: id, URI: uri, Options: r}); err != nil {
			t.Fatal(err)
		}
	}
	co := bson.D{}
	if api {
		co = append(co, bson.E{Key: "serverApi", Value: bson.D{{Key: "version", Value: "1"}, {Key: "deprecationErrors", Value: true}}})
	}
	open("client", "client", co)
	open("database", "database", bson.D{{Key: "client", Value: "client"}, {Key: "databaseName", Value: "db"}})
	open("collection", "collection", bson.D{{Key: "database", Value: "database"}, {Key: "collectionName", Value: "coll"}})
	if session != "" {
		so := map[string]bson.D{"causal": {}, "notCausal": {{Key: "causalConsistency", Value: false}}, "snapshot": {{Key: "snapshot", Value: true}}}[session]
		open("session", "session", bson.D{{Key: "client", Value: "client"}, {Key: "sessionOptions", Value: so}})
	}
	out := map[string][]message{}
	pipeline := func(s ...any) bson.E { return bson.E{Key: "pipeline", Value: append(bson.A{}, s...)} }
	filter := bson.E{Key: "filter", Value: bson.D{}}
	for _, op := range wireOps {
		var obj, name string
		var args bson.D
		save := ""
		switch op {
		case "find":
			obj, name, args = "collection", "find", bson.D{filter}
		case "findBatches":
			obj, name, args = "collection", "find", bson.D{filter, {Key: "batchSize", Value: 2}}
		case "findLimit":
			obj, name, args = "collection", "find", bson.D{filter, {Key: "limit", Value: 4}, {Key: "batchSize", Value: 3}}
		case "findNegative":
			obj, name, args = "collection", "find", bson.D{filter, {Key: "limit", Value: -2}}
		case "findOne":
			obj, name, args = "collection", "findOne", bson.D{filter}
		case "aggregate":
			obj, name, args = "collection", "aggregate", bson.D{pipeline(bson.D{{Key: "$match", Value: bson.D{}}}), {Key: "batchSize", Value: 2}}
		case "aggregateDatabase":
			obj, name, args = "database", "aggregate", bson.D{pipeline(bson.D{{Key: "$listLocalSessions", Value: bson.D{}}})}
		case "out":
			obj, name, args = "collection", "aggregate", bson.D{pipeline(bson.D{{Key: "$match", Value: bson.D{}}}, bson.D{{Key: "$out", Value: "out"}})}
		case "countDocuments":
			obj, name, args = "collection", "countDocuments", bson.D{filter}
		case "estimatedDocumentCount":
			obj, name = "collection", "estimatedDocumentCount"
		case "distinct":
			obj, name, args = "collection", "distinct", bson.D{{Key: "fieldName", Value: "_id"}, filter}
		case "listDatabases", "listDatabaseNames":
			obj, name = "client", op
		case "listCollections", "listCollectionNames":
			obj, name = "database", op
		case "listIndexes":
			obj, name = "collection", op
		case "watch", "watchDatabase", "watchClient":
			obj, name, args, save = map[string]string{"watch": "collection", "watchDatabase": "database", "watchClient": "client"}[op], "createChangeStream", bson.D{pipeline()}, op
		case "cursorClose":
			obj, name, args, save = "collection", "createFindCursor", bson.D{filter, {Key: "batchSize", Value: 2}}, op
		case "runCommand":
			obj, name, args = "database", "runCommand", bson.D{{Key: "commandName", Value: "ping"}, {Key: "command", Value: bson.D{{Key: "ping", Value: 1}}}}
		case "runCursorCommand":
			obj, name, args = "database", "runCursorCommand", bson.D{{Key: "commandName", Value: "find"}, {Key: "batchSize", Value: 2}, {Key: "command", Value: bson.D{{Key: "find", Value: "coll"}, {Key: "batchSize", Value: 2}}}}
		}
		if session != "" {
			args = append(args, bson.E{Key: "session", Value: "session"})
		}
		r, _ := bson.Marshal(args)
		c, cancel := context.WithTimeout(ctx, 10*time.Second)
		o := te.Do(c, engine.Operation{Object: obj, Name: name, Arguments: r, SaveAs: save})
		if save != "" && o.Err == nil {
			_ = te.Close(ctx, save)
		}
		cancel()
		app, hs := application(p.take())
		out[op] = app
		out["handshake"] = append(out["handshake"], hs...)
	}
	_ = te.End(ctx)
	app, hs := application(p.take())
	out["close"] = app
	out["handshake"] = append(out["handshake"], hs...)
	return out
}

func runTheirs(t *testing.T, p *taps, uri, session string, api bool) map[string][]message {
	o := options.Client().ApplyURI(uri)
	if api {
		o.SetServerAPIOptions(options.ServerAPI("1").SetDeprecationErrors(true))
	}
	c, err := mongo.Connect(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if session != "" {
		so := options.Session()
		switch session {
		case "notCausal":
			so.SetCausalConsistency(false)
		case "snapshot":
			so.SetSnapshot(true)
		}
		s, err := c.StartSession(so)
		if err != nil {
			t.Fatal(err)
		}
		ctx = mongo.NewSessionContext(ctx, s)
		defer s.EndSession(context.Background())
	}
	db := c.Database("db")
	coll := db.Collection("coll")
	out := map[string][]message{}
	all := func(k *mongo.Cursor, err error) {
		if err == nil {
			var d []bson.Raw
			_ = k.All(ctx, &d)
		}
	}
	for _, op := range wireOps {
		switch op {
		case "find":
			all(coll.Find(ctx, bson.D{}))
		case "findBatches":
			all(coll.Find(ctx, bson.D{}, options.Find().SetBatchSize(2)))
		case "findLimit":
			all(coll.Find(ctx, bson.D{}, options.Find().SetBatchSize(3).SetLimit(4)))
		case "findNegative":
			all(coll.Find(ctx, bson.D{}, options.Find().SetLimit(-2)))
		case "findOne":
			_, _ = coll.FindOne(ctx, bson.D{}).Raw()
		case "aggregate":
			all(coll.Aggregate(ctx, bson.A{bson.D{{Key: "$match", Value: bson.D{}}}}, options.Aggregate().SetBatchSize(2)))
		case "aggregateDatabase":
			all(db.Aggregate(ctx, bson.A{bson.D{{Key: "$listLocalSessions", Value: bson.D{}}}}))
		case "out":
			all(coll.Aggregate(ctx, bson.A{bson.D{{Key: "$match", Value: bson.D{}}}, bson.D{{Key: "$out", Value: "out"}}}))
		case "countDocuments":
			_, _ = coll.CountDocuments(ctx, bson.D{})
		case "estimatedDocumentCount":
			_, _ = coll.EstimatedDocumentCount(ctx)
		case "distinct":
			_ = coll.Distinct(ctx, "_id", bson.D{})
		case "listDatabases":
			_, _ = c.ListDatabases(ctx, bson.D{})
		case "listDatabaseNames":
			_, _ = c.ListDatabaseNames(ctx, bson.D{})
		case "listCollections":
			all(db.ListCollections(ctx, bson.D{}))
		case "listCollectionNames":
			_, _ = db.ListCollectionNames(ctx, bson.D{})
		case "listIndexes":
			all(coll.Indexes().List(ctx))
		case "watch":
			if s, err := coll.Watch(ctx, bson.A{}); err == nil {
				_ = s.Close(ctx)
			}
		case "watchDatabase":
			if s, err := db.Watch(ctx, bson.A{}); err == nil {
				_ = s.Close(ctx)
			}
		case "watchClient":
			if s, err := c.Watch(ctx, bson.A{}); err == nil {
				_ = s.Close(ctx)
			}
		case "cursorClose":
			if k, err := coll.Find(ctx, bson.D{}, options.Find().SetBatchSize(2)); err == nil {
				_ = k.Close(ctx)
			}
		case "runCommand":
			_ = db.RunCommand(ctx, bson.D{{Key: "ping", Value: 1}})
		case "runCursorCommand":
			k, err := db.RunCommandCursor(ctx, bson.D{{Key: "find", Value: "coll"}, {Key: "batchSize", Value: 2}})
			if err == nil {
				k.SetBatchSize(2)
			}
			all(k, err)
		}
		app, hs := application(p.take())
		out[op] = app
		out["handshake"] = append(out["handshake"], hs...)
	}
	_ = c.Disconnect(context.Background())
	app, hs := application(p.take())
	out["close"] = app
	out["handshake"] = append(out["handshake"], hs...)
	return out
}

func runPython(t *testing.T, py string, p *taps, uri, session string, api bool) map[string][]message {
	cmd := exec.Command(py, "/tmp/wire.py", uri, session, fmt.Sprint(api), strings.Join(wireOps, ","))
	in, _ := cmd.StdinPipe()
	stdout, _ := cmd.StdoutPipe()
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out := map[string][]message{}
	sc := bufio.NewScanner(stdout)
	for sc.Scan() {
		app, hs := application(p.take())
		out[sc.Text()] = app
		out["handshake"] = append(out["handshake"], hs...)
		fmt.Fprintln(in, "go")
	}
	_ = cmd.Wait()
	return out
}
