package runner

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs"
)

const exampleEntities = `
description: effects of operations
schemaVersion: "1.12"
createEntities:
  - client: {id: client}
  - database: {id: database, client: client, databaseName: db}
  - database: {id: admin, client: client, databaseName: admin}
  - collection: {id: collection, database: database, collectionName: c}
  - bucket: {id: bucket, database: database}
  - bucket: {id: empty, database: database, bucketOptions: {bucketName: empty}}
  - session: {id: session, client: client}
  - session: {id: snapshot, client: client, sessionOptions: {snapshot: true}}
tests:
`

// Each operation has the effect on an embedded deployment that the table states, or that the case states for specific
// arguments.
func TestEffects(t *testing.T) {
	var text strings.Builder
	text.WriteString(exampleEntities)
	var stated []string // effect of each test, or ""
	for line := range strings.Lines(testkit.Stories(t, "testdata/cases/effects.txt")[0].Text) {
		steps, effect, _ := strings.Cut(strings.TrimSpace(line), " = ")
		stated = append(stated, effect)
		fmt.Fprintf(&text, "  - description: %q\n    operations:\n", line)
		for step := range strings.SplitSeq(steps, " | ") {
			words := strings.SplitN(step, " ", 3)
			save := ""
			if slices.ContainsFunc(operations.KindsWith(words[1]), func(k entities.Kind) bool {
				row, _ := operations.Lookup(k, words[1])
				return row.Result == operations.NewCursor
			}) {
				save = ", saveResultAsEntity: cursor"
			}
			fmt.Fprintf(&text, "      - {name: %s, object: %s, arguments: %s%s}\n", words[1], words[0], words[2], save)
		}
	}
	suite := parse(t, text.String())

	source, client := started(t, "8.0")
	proved := make(map[string]operations.Effect) // by row
	var before state
	done := 0
	begin := func() {
		populate(t, client)
		before = stateOf(t, client)
	}
	_, err := Run(testkit.Context(t), []*specs.Suite{suite},
		Config{Engine: observer{withoutBackoff(t), begin}, Source: source, Notify: func(n result.Note) {
			if n, ok := n.(result.TestFinished); ok {
				test, want := suite.Tests[done], stated[done]
				done++
				if n.Verdict.Status != result.Passed {
					t.Errorf("%s%s: %s %v", test.Description, n.Verdict.Status, n.Verdict.Reason, n.Verdict.Mismatches)
					return
				}
				op := test.Operations[len(test.Operations)-1]
				row := test.Steps[slices.IndexFunc(test.Steps, func(s specs.Step) bool { return s.Position == op.Position })].Row
				if want == "" {
					want = row.Effect.String()
				}
				changed, taken := before.change(stateOf(t, client)), effectOf(test)
				if changed.String() != want || taken != changed {
					t.Errorf("%sit changed %s, want %s, effectOf returns %s", test.Description, changed, want, taken)
				}
				if want == row.Effect.String() {
					proved[key(row)] = changed
				}
			}
		}})
	testkit.Check(t, err)
	for _, row := range operations.All() {
		effect := proved[key(row)] // Anything without a case
		if row.Kind == entities.TestRunner {
			effect = operations.Reads // the runner disables fail points
		}
		if row.Effect != effect {
			t.Errorf("%s can change %s, but has effect %s in the table", key(row), effect, row.Effect)
		}
	}
}

// observer calls a function before each test, after initial data was created.
type observer struct {
	engine.Engine
	before func()
}

func (o observer) Begin(ctx context.Context) (engine.Test, error) {
	o.before()
	return o.Engine.Begin(ctx)
}

// After any tests, in any order, initial data is as ReseedAlways would create it.
func TestInitialDataIsComplete(t *testing.T) {
	files, err := filepath.Glob("../specs/retryable-*s/*.yml")
	testkit.Check(t, err)
	part := testkit.Chance(t, 3) // parsing takes longer than running
	loaded, err := specs.Load(slices.DeleteFunc(files, func(string) bool { return !part() }), specs.Options{})
	testkit.Check(t, err)
	picked := testkit.Chance(t, 20)
	for _, s := range loaded.Suites {
		s.Tests = slices.DeleteFunc(s.Tests, func(*specs.Test) bool { return !picked() })
	}
	for _, version := range []string{"7.0", "8.0"} { // without and with bulkWrite
		t.Run(version, func(t *testing.T) { checkInitialData(t, version, loaded.Suites) })
	}
}

func checkInitialData(t *testing.T, version string, suites []*specs.Suite) {
	source, client := started(t, version)
	data := make(map[string][]specs.CollectionData)
	for _, s := range suites {
		data[s.File] = s.InitialData
	}
	var file string
	tests := 0
	check := func() {
		tests++
		found := stateOf(t, client)
		for _, d := range data[file] {
			c, err := collectionOf(d)
			testkit.Check(t, err)
			if is := found[c.namespace()]; !is.plain ||
				!slices.EqualFunc(is.documents, c.documents, func(a, b bson.Raw) bool { return bytes.Equal(a, b) }) {
				t.Errorf("%s: %s has %v; without options and indexes: %v", file, c.namespace(), is.documents, is.plain)
			}
		}
	}
	seed := int64(testkit.Seed(t) >> 1)
	_, err := Run(testkit.Context(t), suites,
		Config{Engine: observer{withoutBackoff(t), check}, Source: source, Shuffle: &seed, Notify: func(n result.Note) {
			if n, ok := n.(result.TestStarted); ok {
				file = n.Test.File
			}
		}})
	testkit.Check(t, err)
	if tests < 5 {
		t.Errorf("only %d tests", tests)
	}
}

// started starts a replica set and connects a client.
func started(t *testing.T, version string) (deployment.Source, *mongo.Client) {
	t.Helper()
	ctx := testkit.Context(t)
	source := cluster(t, embedded.Options{Topology: embedded.ReplicaSet, Version: version}, deployment.ClusterOptions{})
	d, err := source.Acquire(ctx, 0)
	testkit.Check(t, err)
	source.Release(d, false)
	client, err := mongo.Connect(options.Client().ApplyURI(d.URI()))
	testkit.Check(t, err)
	t.Cleanup(func() { _ = client.Disconnect(context.WithoutCancel(ctx)) })
	return source, client
}

// withoutBackoff returns the reference engine without backoff.
func withoutBackoff(t *testing.T) engine.Engine {
	t.Helper()
	e, err := reference.New(reference.Options{Backoff: reference.BackoffNone})
	testkit.Check(t, err)
	t.Cleanup(func() { _ = e.Close() })
	return e
}

func key(row operations.Operation) string { return string(row.Kind) + "." + row.Name }

// state is the state of a deployment by namespace; "" has the server parameters.
type state map[string]struct {
	definition []bson.Raw // listCollections and listIndexes
	plain      bool       // no options and indexes
	documents  []bson.Raw
}

func (before state) change(after state) operations.Effect {
	effect := operations.Reads
	for ns, was := range before {
		if is, found := after[ns]; !found || !cmp.Equal(was.definition, is.definition) {
			return operations.Anything
		} else if !cmp.Equal(was.documents, is.documents) {
			effect = operations.Writes
		}
	}
	for ns, is := range after {
		if _, found := before[ns]; !found {
			effect = operations.Writes
			if !is.plain {
				return operations.Anything
			}
		}
	}
	return effect
}

func stateOf(t *testing.T, client *mongo.Client) state {
	t.Helper()
	ctx := testkit.Context(t)
	all := func(c *mongo.Cursor, err error) (out []bson.Raw) {
		if err == nil {
			err = c.All(ctx, &out)
		}
		testkit.Check(t, err)
		return out
	}
	out := make(state)
	names, err := client.ListDatabaseNames(ctx,
		bson.D{{Key: "name", Value: bson.D{{Key: "$nin", Value: bson.A{"local", "config"}}}}})
	testkit.Check(t, err)
	for _, name := range names {
		db := client.Database(name)
		for _, listed := range all(db.ListCollections(ctx, bson.D{})) {
			c := db.Collection(listed.Lookup("name").StringValue())
			one := out[name+"."+c.Name()]
			one.definition = append(all(c.Indexes().List(ctx)), listed)
			options, _ := listed.Lookup("options").Document().Elements()
			one.plain = len(one.definition) == 2 && len(options) == 0
			one.documents = all(c.Find(ctx, bson.D{}))
			out[name+"."+c.Name()] = one
		}
	}
	rest := out[""]
	for _, command := range []bson.D{{{Key: "getParameter", Value: "*"}},
		{{Key: "getParameter", Value: 1}, {Key: "failpoint.failCommand", Value: 1}}} {
		reply, err := client.Database("admin").RunCommand(ctx, command).Raw()
		testkit.Check(t, err)
		elements, _ := reply.Elements()
		for _, e := range elements {
			if !strings.HasPrefix(e.Key(), "$") && e.Key() != "operationTime" {
				rest.definition = append(rest.definition, bson.Raw(e))
			}
		}
	}
	out[""] = rest
	return out
}

// populate creates the data of the cases.
func populate(t *testing.T, client *mongo.Client) {
	t.Helper()
	ctx, db := testkit.Context(t), client.Database("db")
	testkit.Check(t, db.Drop(ctx))
	for name, documents := range map[string]string{
		"c":         `[{"_id": 1, "x": 1}, {"_id": 2, "x": 2}]`,
		"fs.files":  `[{"_id": 1, "length": {"$numberLong": "1"}, "chunkSize": 1, "filename": "f", "uploadDate": {"$date": "2026-01-01T00:00:00Z"}}]`,
		"fs.chunks": `[{"_id": 1, "files_id": 1, "n": 0, "data": {"$binary": {"base64": "AA==", "subType": "00"}}}]`,
	} {
		var list bson.A
		testkit.Check(t, bson.UnmarshalExtJSON([]byte(documents), false, &list))
		_, err := db.Collection(name).InsertMany(ctx, list)
		testkit.Check(t, err)
	}
	_, err := db.Collection("c").Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.D{{Key: "y", Value: 1}}})
	testkit.Check(t, err)
}
