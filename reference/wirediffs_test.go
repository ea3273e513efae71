package reference

// goDifferences is where the reference engine and the Go driver differ on the
// wire, with who is right by the specifications.
func goDifferences() []explanation {
	const none = "-"
	return []explanation{
		{of: difference{op: "list(Collections|CollectionNames|Databases|DatabaseNames)", field: `\$readPreference`,
			ours: `-|\{mode: "primaryPreferred"\}`, where: ".*/(secondaryPreferred|tags|nearest)"},
			right: "reference", section: "Server Selection, Use of read preferences with commands; Enumerating Collections, Replica Sets; Enumerating Databases, Replica Sets",
			reason: "the commands run on the primary and ignore the client's read preference; the Go driver passes it on"},
		{of: difference{op: "list(Collections|CollectionNames|Databases|DatabaseNames)", field: "filter", ours: none, theirs: `\{\}`},
			right: "both", section: "Enumerating Collections, Driver methods",
			reason: "the Go driver's methods have no call without a filter, and an empty one selects all"},
		{of: difference{op: "findOne", field: "limit", ours: `\{"\$numberInt":"1"\}`, theirs: `\{"\$numberLong":"1"\}`},
			right: "both", section: "CRUD, FindOptions", reason: "servers take any integer type"},
		{of: difference{op: "findLimit", command: "getMore", field: "batchSize",
			ours: `\{"\$numberInt":"1"\}`, theirs: `\{"\$numberInt":"3"\}`},
			right: "reference", section: "Find, getMore and killCursors commands, Behavior of Limit, skip and batchSize",
			reason: "of limit 4 one document is left after a batch of 3, and the example there asks for it; the Go driver asks for a whole batch"},
		{of: difference{where: ".*/timeoutMS", command: "find|aggregate|killCursors|create|dropDatabase", field: "maxTimeMS",
			ours: "64-bit integer", theirs: none},
			right: "reference", section: "Client Side Operations Timeout, Command Execution; Cursors",
			reason: "every command has maxTimeMS but getMore and the commands of cursors in mode ITERATION; the Go driver leaves it out where a cursor comes of the command, for killCursors, create and dropDatabase"},
		{of: difference{op: "close", command: "endSessions", field: `\$readPreference`, ours: `\{mode: "primaryPreferred"\}`, theirs: none},
			right: "reference", section: "Driver Sessions, endSessions; Server Selection, Topology type: Single",
			reason: "both select by primaryPreferred; a command that may reach a secondary passes the preference"},
		{of: difference{op: "abortTransaction", where: ".*/(secondaryPreferred|tags|nearest)", field: "commands",
			ours: "", theirs: "(find )?abortTransaction"},
			right: "reference", section: "Transactions, readPreference; abortTransaction",
			reason: "the read is refused for its read preference, so nothing was sent in the transaction, and nothing is aborted; the Go driver has marked it in progress by then, and asks a standalone all the same"},
	}
}
