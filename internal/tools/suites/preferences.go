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

// modes are the modes that determine the member if all members of a replica set are up.
var modes = []mode{{"primary", true}, {"primaryPreferred", true}, {"secondary", false}, {"secondaryPreferred", false}}

// reads returns the story of a read from the primary, where a fail point makes it fail, or from a secondary. Rest is
// the end of the description. The last operation shows that the fail point was on.
func (m mode) reads(database string, o operation, rest string, primary bool) story {
	s := story{Says: "reads from a secondary with mode " + m.name + rest}
	if primary {
		s.Says, s.Raises = "reads from the primary with mode "+m.name+rest, raisedCode(interrupted)
	}
	if !primary {
		s.After = []value{onPrimary(o)}
	}
	return s.betweenMembers(m.name, database, errorCode(interrupted), 1)
}

// onPrimary returns the operation on the primary, where the fail point fails it.
func onPrimary(o operation) value {
	o.Object = "collection"
	return o.call("setup", nil, raisedCode(interrupted))
}

func (m mode) carried() value {
	if m.name == "primary" {
		return doc("$readPreference", absent)
	}
	return doc("$readPreference", doc("mode", m.name))
}

func preferring(options value) (clients []client) {
	for _, m := range modes {
		clients = append(clients, observed(m.name, merge(doc("readPreference", m.name), options)))
	}
	return clients
}

// preferenceReads returns operations with a read preference. They have no result, because a secondary may not have
// the documents yet.
func preferenceReads(database string) (list []operation) {
	for _, o := range readOperations(database) {
		if o.Object == "collection" && !o.Watches && !strings.HasPrefix(o.Name, "list") {
			o.Result = nil
			list = append(list, o)
		}
	}
	return list
}

// preferenceSuites has a fail point on the primary. It shows which member gets a read.
func preferenceSuites() specification {
	const database = "utr-read-preferences"
	f := newFile("modes", "the member that is read from", servers("4.2", sets),
		"A fail point fails every read on the primary. Reads with a mode that prefers the primary fail, and the others",
		"succeed on a secondary, which the replica set must have. Clients do not retry.")
	f.Clients, f.Entities = preferring(doc("retryReads", false)), objectEntities(database, "setup", "collection")
	for _, m := range modes {
		for _, o := range preferenceReads(database) {
			s := m.reads(database, o, " (R1)", m.primary)
			s.Carries = m.carried()
			f.add(o, s)
		}
	}

	tags := newFile("tags", "tag sets that no member has", servers("4.2", sets),
		"No member of a test deployment has the tag utr: nowhere. Modes that can fall back to the primary do so, and its",
		"fail point fails the read. An empty set at the end of a list matches every member.")
	// The timeout of the client waiting leaves a busy machine enough time to discover the deployment.
	tags.Clients = append(preferring(doc("retryReads", false))[1:],
		observed("waiting", doc("readPreference", "secondary", "retryReads", false, "serverSelectionTimeoutMS", 3000)))
	nowhere := flow("[ { utr: nowhere } ]")
	tagged := func(id, client, mode string, sets value) value {
		return block(doc("collection", doc("id", id+"-"+client, "database", "database-"+client, "collectionName", collection,
			"collectionOptions", doc("readPreference", doc("mode", mode, "tagSets", sets)))))
	}
	tags.Entities = append(objectEntities(database, "setup", "collection"), tagged("nowhere", "waiting", "secondary",
		nowhere))
	for _, name := range []string{"find", "aggregate"} {
		o := titled(preferenceReads(database), "collection."+name)
		o.Heading, o.Object = o.title(), "nowhere"
		tags.add(o, story{Says: "finds no server with mode secondary and tag sets [ { utr: nowhere } ] (R1)",
			Raises: raisedNetwork, After: []value{onPrimary(o)}}.betweenMembers("waiting", database, errorCode(interrupted), 0))
	}
	for _, m := range modes[1:] {
		for _, e := range []struct {
			id, says string
			sets     value
		}{{"nowhere", "[ { utr: nowhere } ]", nowhere}, {"anywhere", "[ { utr: nowhere }, {} ]",
			flow("[ { utr: nowhere }, {} ]")}} {
			tags.Entities = append(tags.Entities, tagged(e.id, m.name, m.name, e.sets))
			if e.id == "nowhere" && m.name == "secondary" {
				continue // no member matches
			}
			for _, o := range preferenceReads(database) {
				o.Heading, o.Object = o.title(), e.id
				tags.add(o, m.reads(database, o, " and tag sets "+e.says+" (R1)", m.primary || e.id == "nowhere"))
			}
		}
	}

	routed := newFile("sharded", "the read preference that a mongos gets", servers("4.2", sharded),
		"A mongos selects the members of shards, so drivers send it the read preference, unless the mode is primary.")
	routed.Clients = preferring(doc("retryReads", false))
	for _, m := range modes {
		for _, o := range preferenceReads(database) {
			s := story{Says: "carries $readPreference with mode " + m.name + " (R5)", By: m.name, Attempts: 1,
				Carries: m.carried()}
			if m.name == "primary" {
				s.Says = "carries no $readPreference with mode primary (R5)"
			}
			routed.add(o, s)
		}
	}
	return specification{Name: "read-preferences", Files: []*file{f, tags, routed}}
}

// preferencesOf2014 returns the suites of the policy read-preferences@2014-02-14.
func preferencesOf2014() specification {
	const database = "utr-read-preferences-2014"
	f := newFile("members", "the member that is read from", servers("4.2", sets),
		"A read is tried on up to three members, but only after network errors. Most commands run on the primary. The",
		"replica set must have a secondary.")
	f.Clients = append(preferring(doc("retryReads", false)),
		observed("retrying", doc("readPreference", "primaryPreferred")))
	f.Entities = objectEntities(database, "setup", "collection")
	for _, o := range preferenceReads(database) {
		for i, m := range modes {
			f.add(o, m.reads(database, o, fmt.Sprintf(" (P%d)", 15+i), m.primary))
		}
		f.add(o,
			story{Says: "is tried on a secondary after a network error of the primary (P7)",
				Today: "retryReads is false"}.betweenMembers("primaryPreferred", database, closes, 2),
			story{Says: "is not tried on another member after ShutdownInProgress (P6)", Raises: raisedCode(shutdownInProgress),
				Today: "it is retried"}.betweenMembers("retrying", database, errorCode(shutdownInProgress), 1),
			story{Says: "carries secondaryPreferred in place of the slaveOk bit with mode secondary (P23)",
				Carries: doc("$readPreference", doc("mode", "secondaryPreferred")), Today: "it carries the mode secondary",
			}.betweenMembers("secondary", database, nil, 1))
	}
	ping := titled(table("commands", database), "database.runCommand with ping")
	ping.Arguments = flow("{ commandName: ping, command: { ping: 1 }, readPreference: { mode: secondary } }")
	f.add(ping, story{Says: "runs on the primary even with mode secondary (P25)", By: "secondary", Before: []value{
		flow("{ name: find, object: collection-secondary, arguments: { filter: {} } }")}, Mode: always,
		Fails:  errorCode(interrupted),
		Raises: raisedCode(interrupted), Attempts: 1,
		Seen:  []value{startedEvent(doc("find", collection), "find", database), succeededEvent("find")},
		Today: "it runs on a secondary"})
	return specification{Name: "read-preferences-2014", Policy: "read-preferences@2014-02-14", Files: []*file{f}}
}
