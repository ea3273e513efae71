package acceptance

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/result"
)

// Reads go to the members that tags, latency and visibility allow, by the current rules and by the rules of 2014.
func TestMembersThatRead(t *testing.T) {
	parse := func(text string) embedded.Member {
		m, err := embedded.ParseMember(text)
		testkit.Check(t, err)
		return m
	}
	d, err := embedded.Start(t.Context(),
		embedded.Options{Topology: embedded.ReplicaSet, Members: 4, MemberConfigs: []embedded.Member{
			parse(`{"tags": {"dc": "east"}}`),
			parse(`{"tags": {"dc": "west"}, "priority": 0, "latencyMS": 800}`),
			parse(`{"tags": {"dc": "west"}, "priority": 0}`),
			parse(`{"tags": {"dc": "west"}, "priority": 0, "hidden": true}`),
		}})
	testkit.Check(t, err)
	t.Cleanup(func() { testkit.Check(t, d.Close()) })
	hosts := d.Hosts()
	for _, policy := range []string{"current", "read-preferences@2014-02-14"} {
		e, err := reference.New(reference.Options{Policy: policy})
		testkit.Check(t, err)
		t.Cleanup(func() { testkit.Check(t, e.Close()) })
		for _, r := range []struct {
			reason, threshold, preference string
			want                          []int
		}{
			{"near members with any tags", "400", `{"mode": "nearest"}`, []int{0, 2}},
			{"the near one of two members with the tag; a hidden one is unknown", "400",
				`{"mode": "nearest", "tagSets": [{"dc": "west"}]}`, []int{2}},
			{"both if neither is too far", "60000", `{"mode": "secondary", "tagSets": [{"dc": "west"}]}`, []int{1, 2}},
			{"the primary if no member has the tag", "400", `{"mode": "secondaryPreferred", "tagSets": [{"dc": "north"}]}`,
				[]int{0}},
			{"the second tag set if no member has the tag of the first", "400",
				`{"mode": "nearest", "tagSets": [{"dc": "north"}, {"dc": "east"}]}`, []int{0}},
		} {
			t.Run(policy+": "+r.reason, func(t *testing.T) {
				t.Parallel()
				var want []string
				for _, i := range r.want {
					want = append(want, hosts[i])
				}
				slices.Sort(want)
				testkit.Equal(t, "members", readBy(t, e, d.URI(), r.threshold, r.preference, want), want)
			})
		}
	}
}

// readBy returns the members that received reads, sorted. It reads eight times, and up to forty times until all wanted
// members were seen.
func readBy(t *testing.T, e engine.Engine, uri, threshold, preference string, want []string) []string {
	t.Helper()
	ctx := testkit.Context(t)
	test, err := e.Begin(ctx)
	testkit.Check(t, err)
	defer func() { testkit.Check(t, test.End(context.WithoutCancel(ctx))) }()
	open(t, test, uri, `{"localThresholdMS": `+threshold+`}`, preference)
	find := testkit.Extended[bson.Raw](t, `{"filter": {}}`)
	// Wait for all members except the hidden one, which is in the connection string but is then removed.
	after := int64(0)
	for known := map[string]bool{}; len(known) < 3; {
		events, err := test.Events(ctx, "client", after, testkit.Patience)
		testkit.Check(t, err)
		for _, x := range events {
			after = x.Sequence
			if x.Type == result.ServerDescriptionChanged && strings.HasPrefix(x.New.Type, "RS") && x.New.Type != "RSOther" {
				known[x.Address] = true
			}
		}
	}
	seen := map[string]bool{}
	for n := 0; n < 8 || len(seen) < len(want) && n < 40; n++ {
		if out := test.Do(ctx, engine.Operation{Object: "collection", Name: "find", Arguments: find}); out.Err != nil {
			t.Fatal(out.Err)
		}
		events, err := test.Events(ctx, "client", after, 0)
		testkit.Check(t, err)
		for _, x := range events {
			if x.Type == result.CommandStarted && x.CommandName == "find" {
				seen[x.Address] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// open opens a client, a database and a collection with a read preference.
func open(t *testing.T, test engine.Test, uri, uriOptions, preference string) {
	t.Helper()
	for _, x := range []struct{ kind, options string }{
		{"client", `{"uriOptions": ` + uriOptions + `}`},
		{"database", `{"client": "client", "databaseName": "members"}`},
		{"collection", `{"database": "database", "collectionName": "c", "collectionOptions": {"readPreference": ` +
			preference + `}}`},
	} {
		options := testkit.Extended[bson.Raw](t, x.options)
		testkit.Check(t, test.Open(t.Context(), engine.Entity{Kind: x.kind, ID: x.kind, Options: options, URI: uri}))
	}
}

// By the rules of 2014, a secondary rejects what a direct connection sends without the slaveOk bit: reads with mode
// primary. All other commands run on it, even those that obey no read preference.
func TestDirectConnectionToASecondary(t *testing.T) {
	d, err := embedded.Start(t.Context(), embedded.Options{Topology: embedded.ReplicaSet, Members: 2})
	testkit.Check(t, err)
	t.Cleanup(func() { testkit.Check(t, d.Close()) })
	const refused = 13435 // NotPrimaryNoSecondaryOk
	for _, r := range []struct {
		policy, preference, object, operation, arguments string
		code                                             int32
	}{
		{"read-preferences@2014-02-14", `{"mode": "primary"}`, "collection", "find", `{"filter": {}}`, refused},
		{"read-preferences@2014-02-14", `{"mode": "primary"}`, "collection", "count", `{"filter": {}}`, refused},
		{"read-preferences@2014-02-14", `{"mode": "primaryPreferred"}`, "collection", "find", `{"filter": {}}`, 0},
		{"read-preferences@2014-02-14", `{"mode": "secondary"}`, "collection", "find", `{"filter": {}}`, 0},
		{"read-preferences@2014-02-14", `{"mode": "secondary", "tagSets": [{"no": "member"}]}`, "collection", "find",
			`{"filter": {}}`, 0},
		{"read-preferences@2014-02-14", `{"mode": "primary"}`, "database", "runCommand",
			`{"commandName": "ping", "command": {"ping": 1}}`, 0},
		{"read-preferences@2014-02-14", `{"mode": "primary"}`, "database", "runCommand",
			`{"commandName": "listCollections", "command": {"listCollections": 1}, "readPreference": {"mode": "secondary"}}`, 0},
		{"current", `{"mode": "primary"}`, "collection", "find", `{"filter": {}}`, 0},
	} {
		t.Run(strings.Join([]string{r.policy, r.preference, r.operation, r.arguments}, " "), func(t *testing.T) {
			e, err := reference.New(reference.Options{Policy: r.policy})
			testkit.Check(t, err)
			defer func() { testkit.Check(t, e.Close()) }()
			test, err := e.Begin(t.Context())
			testkit.Check(t, err)
			defer func() { testkit.Check(t, test.End(context.WithoutCancel(t.Context()))) }()
			open(t, test, "mongodb://"+d.Hosts()[1]+"/", `{"directConnection": true}`, r.preference)
			out := test.Do(t.Context(), engine.Operation{Object: r.object, Name: r.operation,
				Arguments: testkit.Extended[bson.Raw](t, r.arguments)})
			code := int32(0)
			if out.Err != nil {
				if code = out.Err.Code; code == 0 {
					t.Fatal(out.Err)
				}
			}
			testkit.Equal(t, "the code of the error", code, r.code)
		})
	}
}
