package main

import (
	"fmt"
	"strings"
)

// mode is the mode of a read preference.
type mode struct {
	name    string
	primary bool // reads from the primary
}

// modes are those that determine the member if all members of a replica set are up.
var modes = []mode{{"primary", true}, {"primaryPreferred", true}, {"secondary", false}, {"secondaryPreferred", false}}

// reads returns the story of a read from the primary, where a fail point fails it, or from a secondary. Rest ends
// the description.
func (m mode) reads(database, rest string, primary bool) Story {
	s := Story{Says: "reads from a secondary with mode " + m.name + rest}
	if primary {
		s.Says, s.Raises = "reads from the primary with mode "+m.name+rest, RaisedCode(Interrupted)
	}
	return s.Between(m.name, database, ErrorCode(Interrupted), 1)
}

func (m mode) carried() string {
	if m.name == "primary" {
		return "$readPreference: { $$exists: false }"
	}
	return "$readPreference: { mode: " + m.name + " }"
}

func preferring(options string) (clients []Client) {
	for _, m := range modes {
		clients = append(clients, Observed(m.name, "readPreference: "+m.name+", "+options))
	}
	return clients
}

// preferenceReads returns operations with a read preference. They have no result, because a secondary may not have
// the documents yet.
func preferenceReads(database string) (list []Operation) {
	for _, o := range readOperations(database) {
		if o.Object == "collection" && !o.Watches && !strings.HasPrefix(o.Name, "list") {
			o.Result = ""
			list = append(list, o)
		}
	}
	return list
}

// preferenceSuites has a fail point on the primary, which shows which member gets a read.
func preferenceSuites() Specification {
	const database = "utr-read-preferences"
	f := NewFile("modes", "the member that is read from", Servers("4.2", Sets),
		"A fail point fails every read on the primary. Reads with a mode that prefers the primary fail, and the others",
		"succeed on a secondary, which the replica set must have. Clients do not retry.")
	f.Clients = preferring("retryReads: false")
	for _, m := range modes {
		for _, o := range preferenceReads(database) {
			s := m.reads(database, " (R1)", m.primary)
			s.Carries = m.carried()
			f.Tell(o, s)
		}
	}

	tags := NewFile("tags", "tag sets that no member has", Servers("4.2", Sets),
		"No member of a test deployment has the tag utr: nowhere. Modes that can fall back to the primary do so, and its",
		"fail point fails the read. An empty set at the end of a list matches every member.")
	// The timeout of the client waiting leaves a busy machine enough time to discover the deployment.
	tags.Clients = append(preferring("retryReads: false")[1:], Observed("waiting", "readPreference: secondary, retryReads: false, serverSelectionTimeoutMS: 3000"))
	tags.Entities = []string{"collection: { id: nowhere-waiting, database: database-waiting, collectionName: " + Collection + ", collectionOptions: " +
		"{ readPreference: { mode: secondary, tagSets: [ { utr: nowhere } ] } } }"}
	for _, name := range []string{"find", "aggregate"} {
		o := Named(preferenceReads(database), "collection."+name)
		o.Heading, o.Object = o.Title(), "nowhere"
		tags.Tell(o, Story{Says: "finds no server with mode secondary and tag sets [ { utr: nowhere } ] (R1)",
			Raises: RaisedNetwork}.Between("waiting", database, ErrorCode(Interrupted), 0))
	}
	for _, m := range modes[1:] {
		for _, e := range []struct{ id, sets string }{{"nowhere", "[ { utr: nowhere } ]"}, {"anywhere", "[ { utr: nowhere }, {} ]"}} {
			tags.Entities = append(tags.Entities, fmt.Sprintf("collection: { id: %s-%s, database: database-%s, collectionName: %s, collectionOptions: "+
				"{ readPreference: { mode: %s, tagSets: %s } } }", e.id, m.name, m.name, Collection, m.name, e.sets))
			if e.id == "nowhere" && m.name == "secondary" {
				continue // no member matches
			}
			for _, o := range preferenceReads(database) {
				o.Heading, o.Object = o.Title(), e.id
				tags.Tell(o, m.reads(database, " and tag sets "+e.sets+" (R1)", m.primary || e.id == "nowhere"))
			}
		}
	}

	routed := NewFile("sharded", "the read preference that a mongos gets", Servers("4.2", Sharded),
		"A mongos selects the members of shards, so drivers send it the read preference, unless the mode is primary.")
	routed.Clients = preferring("retryReads: false")
	for _, m := range modes {
		for _, o := range preferenceReads(database) {
			s := Story{Says: "carries $readPreference with mode " + m.name + " (R5)", By: m.name, Attempts: 1, Carries: m.carried()}
			if m.name == "primary" {
				s.Says = "carries no $readPreference with mode primary (R5)"
			}
			routed.Tell(o, s)
		}
	}
	return Specification{Name: "read-preferences", Files: []*File{f, tags, routed}}
}

// preferencesOf2014 returns the suites of the policy read-preferences@2014-02-14.
func preferencesOf2014() Specification {
	const database = "utr-read-preferences-2014"
	f := NewFile("members", "the member that is read from", Servers("4.2", Sets),
		"A read is tried on up to three members, but only after network errors. Most commands run on the primary. The",
		"replica set must have a secondary.")
	f.Clients = append(preferring("retryReads: false"), Observed("retrying", "readPreference: primaryPreferred"))
	for _, o := range preferenceReads(database) {
		for i, m := range modes {
			f.Tell(o, m.reads(database, fmt.Sprintf(" (P%d)", 15+i), m.primary))
		}
		f.Tell(o,
			Story{Says: "is tried on a secondary after a network error of the primary (P7)",
				Today: "retryReads is false"}.Between("primaryPreferred", database, Closes, 2),
			Story{Says: "is not tried on another member after ShutdownInProgress (P6)", Raises: RaisedCode(ShutdownInProgress),
				Today: "it is retried"}.Between("retrying", database, ErrorCode(ShutdownInProgress), 1),
			Story{Says: "carries secondaryPreferred in place of the slaveOk bit with mode secondary (P23)",
				Carries: "$readPreference: { mode: secondaryPreferred }", Today: "it carries the mode secondary",
			}.Between("secondary", database, "", 1))
	}
	ping := Named(table("commands", database), "database.runCommand with ping")
	ping.Arguments = "{ commandName: ping, command: { ping: 1 }, readPreference: { mode: secondary } }"
	f.Tell(ping, Story{Says: "runs on the primary even with mode secondary (P25)", By: "secondary", Before: []string{
		fmt.Sprintf("{ name: find, object: collection%s, arguments: { filter: {} } }", Suffix("secondary"))}, Mode: Always, Fails: ErrorCode(Interrupted),
		Raises: RaisedCode(Interrupted), Attempts: 1, Seen: []string{StartedEvent("{ find: "+Collection+" }", "find", database), SucceededEvent("find")},
		Today: "it runs on a secondary"})
	return Specification{Name: "read-preferences-2014", Policy: "read-preferences@2014-02-14", Files: []*File{f}}
}
