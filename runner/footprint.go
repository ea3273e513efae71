package runner

import (
	"crypto/sha256"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/specs"
)

// footprint describes what a test uses of servers that other tests use at the same time.
type footprint struct {
	alone string   // why no other test may run beside it, or ""
	timed bool     // if it fails beside others, it runs again alone, because a delay can have failed it
	names []string // sorted namespaces; "database.*" is a whole database, "*.*" the whole cluster
	reads string   // identifies the initial data of a test that only reads; "" if it may change something
}

// wholeCluster is the namespace that stands for all databases.
const wholeCluster = "*." + wholeDatabase

// includes reports whether a test may change a collection.
func (f footprint) includes(namespace string) bool {
	database, _, _ := strings.Cut(namespace, ".")
	return f.alone != "" || slices.ContainsFunc([]string{namespace, database + "." + wholeDatabase, wholeCluster},
		func(name string) bool { return slices.Contains(f.names, name) })
}

// use is a step of a test, in a database, or "" if it is not in one.
type use struct {
	specs.Step
	database string
	own      map[string]bool // databases with an entity of the test, or with initial data
	filled   map[string]bool // databases with initial data, which exist whatever other tests do
	watches  bool            // the test can see what a change stream returns
}

// footprintRule is a reason for a test to use more than the collections that it names.
type footprintRule struct {
	why   string
	holds func(use) bool
}

// wholeRules are reasons why a test uses the whole cluster. If it only reads, tests that read the same initial data may run
// beside it: they change no database.
var wholeRules = []footprintRule{
	{"it lists databases", func(u use) bool {
		return ofAny("listDatabases listDatabaseNames listDatabaseObjects")(u) && !u.filled[u.filteredName()]
	}},
	{"it watches the whole cluster", func(u use) bool {
		return u.Name == "createChangeStream" && u.Kind == entities.Client && u.watches
	}},
}

// clusterRules are reasons why a test runs alone. The first one that applies counts.
var clusterRules = []footprintRule{
	{"it uses an object or an operation that is not known", func(u use) bool { return !u.Known }},
	{"it drops a database of others", func(u use) bool {
		return u.Name == "dropDatabase" && !u.own[u.Arguments.Get("database").Text()]
	}},
	{"it waits for an election", ofAny("waitForPrimaryChange")},
	{"it creates state collections", ofAny("createEncryptedCollection")},
	{"it runs a command that does not name a collection", func(u use) bool {
		name := u.command()
		return name != "" && !slices.Contains(ofCollection, name) && !slices.Contains(harmless, name)
	}},
	{readsServers, func(u use) bool {
		return slices.Contains(serverDatabases, u.database) && u.aggregates() && !u.listsOneSession()
	}},
}

// databaseRules are reasons why a test uses a whole database.
var databaseRules = []footprintRule{
	{"it lists collections", func(u use) bool { return u.listsCollections() && u.filteredName() == "" }},
	{"it watches a database, or aggregates it", func(u use) bool {
		opens := u.Name == "createChangeStream" && (u.watches || !u.filled[u.database])
		return u.Kind == entities.Database && (opens || u.aggregates() && !u.listsOneSession())
	}},
	{"it reads other collections", func(u use) bool { return mentions(u.Arguments, "$lookup", "$graphLookup", "$unionWith", "viewOn") }},
}

// harmless lists commands that a test may run beside others, although they do not name a collection. A cursor and a
// transaction belong to the test, and the proxy executes fail points.
var harmless = strings.Fields("abortTransaction bulkWrite buildInfo commitTransaction configureFailPoint dropDatabase endSessions " +
	"getMore hello isMaster ismaster killCursors listCollections ping renameCollection")

// serverDatabases are the databases in which servers keep their own data.
var serverDatabases = []string{"admin", "config", "local"}

func ofAny(names string) func(use) bool {
	all := strings.Fields(names)
	return func(u use) bool { return slices.Contains(all, u.Name) }
}

func (u use) aggregates() bool { return u.Name == "aggregate" || u.command() == "aggregate" }

// listsOneSession reports whether an aggregation reads any one session of the server. One exists: its own.
func (u use) listsOneSession() bool {
	stages := u.Arguments.Get("pipeline").Elements()
	if len(stages) < 2 || stages[0].Get("$listLocalSessions") == nil || stages[1].Get("$limit") == nil {
		return false
	}
	limit, _ := stages[1].Get("$limit").Integer()
	return limit == 1
}

func (u use) listsCollections() bool {
	return ofAny("listCollections listCollectionNames listCollectionObjects")(u) || u.command() == "listCollections"
}

// filteredName returns the only name that listCollections or listDatabases can return, or "".
func (u use) filteredName() string {
	list := u.Arguments
	if command := list.Get("command"); command != nil {
		list = command
	}
	return list.Get("filter").Get("name").Text()
}

// command returns the name of the command that an operation runs, or "".
func (u use) command() string {
	if command := u.Arguments.Get("command"); command != nil && len(command.Fields) > 0 && u.Kind == entities.Database {
		return command.Fields[0].Key
	}
	return ""
}

// mentions reports whether a key is anywhere in a value.
func mentions(v *source.Value, keys ...string) bool {
	return within(v, func(key string, _ *source.Value) bool { return slices.Contains(keys, key) })
}

// within reports whether holds returns true for a field anywhere in a value.
func within(v *source.Value, holds func(key string, v *source.Value) bool) bool {
	if v == nil {
		return false
	}
	return slices.ContainsFunc(v.Items, func(item *source.Value) bool { return within(item, holds) }) ||
		slices.ContainsFunc(v.Fields, func(f source.Field) bool { return holds(f.Key, f.Value) || within(f.Value, holds) })
}

// footprintOf returns the footprint of a test.
func footprintOf(s *specs.Suite, t *specs.Test) (f footprint) {
	n, own, filled := named{}, map[string]bool{}, map[string]bool{}
	n.data(s.InitialData)
	n.test(t)
	databases := named{}.entities(t.Entities)
	for _, e := range t.Entities {
		own[databases[e.ID]] = true
	}
	for _, d := range s.InitialData {
		own[d.DatabaseName], filled[d.DatabaseName] = true, true
		if mentions(d.CreateOptions, "viewOn") {
			n.add(d.DatabaseName, wholeDatabase)
		}
	}
	f.reads = readsOf(s, t)
	delay := tolerates(t)
	f.timed = delay < longestDelay
	if delay < tightMargin {
		f.alone = tightLimit
	} else if lacksFailPoint(t, deployment.Proxied()) != "" {
		f.alone = insideServer
	} else if clearsOneOfSeveral(t) {
		f.alone = choosesServers
	}
	watches := seesChanges(t)
	for _, step := range t.Steps {
		u := use{step, databases[step.Object], own, filled, watches}
		for _, r := range clusterRules {
			if f.alone == "" && r.holds(u) {
				f.alone = r.why
			}
		}
		for _, r := range wholeRules {
			switch {
			case !r.holds(u):
			case f.reads != "":
				n[wholeCluster] = true
			case f.alone == "":
				f.alone = r.why
			}
		}
		for _, r := range databaseRules {
			if r.holds(u) {
				n.add(u.database, wholeDatabase)
			}
		}
		if u.listsCollections() {
			n.add(u.database, u.filteredName())
		}
		n.add(step.Arguments.Get("databaseName").Text(), step.Arguments.Get("collectionName").Text()) // of assertions
	}
	for name := range n {
		database, collection, _ := strings.Cut(name, ".")
		switch {
		case collection == wholeDatabase && slices.Contains(serverDatabases, database):
			f.alone = readsServers
		case database == "config" || database == "local" || serverOwned(collection):
			f.alone = namesServers
		}
		f.names = append(f.names, name)
	}
	slices.Sort(f.names)
	return f
}

// Times in milliseconds.
const (
	tightMargin  = 500    // how much later a test reaches a step because it runs beside others
	longestDelay = 15_000 // the same, on a busy machine
	defaultAwait = 1000   // how long a server waits for a document of a change stream or a tailable cursor
)

const (
	insideServer   = "it sets a fail point that takes effect inside a server"
	choosesServers = "it expects that connections to one of several mongos are closed"
	readsServers   = "it reads the servers' own data"
	namesServers   = "it names a collection of the servers"
	noSessions     = "the servers have no sessions"
	tightLimit     = "a delay of less than 500 ms can fail it"
	failedBeside   = "a delay of less than 15 s can fail it, and it failed beside others"
)

// tolerates returns how short a delay in milliseconds can make a test fail: one of its time limits, the time from the end
// of a wait of the test or of a server to a limit, or a wait of the test for what a thread does. How long a script sleeps
// on a server is not known.
func tolerates(t *specs.Test) int64 {
	var limits, waits []int64
	shortest := int64(math.MaxInt64)
	collect := func(key string, v *source.Value) bool {
		switch ms := v.Int; {
		case key == "$where":
			shortest = 0
		case key == "cursorType" && v.Text() == "tailableAwait":
			waits = append(waits, defaultAwait)
		case ms <= 0:
		case key == "blockTimeMS", key == "ms":
			waits = append(waits, ms)
		case strings.HasSuffix(key, "imeoutMS"), slices.Contains(timeLimits, key):
			limits = append(limits, ms)
		}
		return false
	}
	threads := false
	for _, e := range t.Entities {
		within(e.Value, collect)
		threads = threads || entities.Kind(e.Kind) == entities.Thread
	}
	for _, step := range t.Steps {
		within(step.Arguments, collect)
		if step.Name == "createChangeStream" {
			waits = append(waits, defaultAwait)
		}
	}
	for _, limit := range limits {
		shortest = min(shortest, limit)
		for _, wait := range waits {
			if limit >= wait {
				shortest = min(shortest, limit-wait)
			}
		}
	}
	if threads && len(waits) > 0 {
		shortest = min(shortest, slices.Min(waits))
	}
	return shortest
}

// seesChanges reports whether a test iterates a cursor, or expects a reply.
func seesChanges(t *specs.Test) bool {
	return slices.ContainsFunc(t.Steps, func(step specs.Step) bool { return strings.HasPrefix(step.Name, "iterate") }) ||
		slices.ContainsFunc(slices.Concat(t.ExpectEvents, t.ExpectLogMessages),
			func(v *source.Value) bool { return mentions(v, "reply") })
}

// clearsOneOfSeveral reports whether a test expects that the pool of a client of several mongos is cleared. A load balancer
// assigns mongos in turns to the connections of all tests, so others change which connections are closed.
func clearsOneOfSeveral(t *specs.Test) bool {
	several := map[string]bool{}
	for _, e := range t.Entities {
		multiple := e.Value.Get("useMultipleMongoses")
		several[e.ID] = multiple != nil && multiple.Bool
	}
	return slices.ContainsFunc(t.ExpectEvents, func(v *source.Value) bool {
		return several[v.Get("client").Text()] && mentions(v, "poolClearedEvent")
	})
}

// timeLimits are the keys of time limits that do not end in timeoutMS.
var timeLimits = []string{"maxTimeMS", "maxCommitTimeMS", "maxAwaitTimeMS", "wtimeout"}

// readsOf identifies the initial data of a test that only reads, or returns "" for other tests. Collections with options
// are created again for each test.
func readsOf(s *specs.Suite, t *specs.Test) string {
	all, err := collectionsOf(s, t)
	if err != nil || effectOf(t) != operations.Reads ||
		slices.ContainsFunc(t.Steps, func(step specs.Step) bool { return mentions(step.Arguments, countingStages...) }) {
		return ""
	}
	data := sha256.New()
	for _, c := range all {
		if c.options != nil {
			return ""
		}
		fmt.Fprintf(data, "%q %t %q\n", c.namespace(), c.absent, c.documents)
	}
	return string(data.Sum(nil))
}

// countingStages return how often a collection was read.
var countingStages = strings.Fields("$collStats $indexStats $planCacheStats")
