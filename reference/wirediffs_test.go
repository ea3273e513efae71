package reference

// goDifferences is where the reference engine and the Go driver differ on the
// wire, with who is right by the specifications.
func goDifferences() []explanation {
	const none = "-"
	return []explanation{
		{of: difference{driver: "go", op: "list(Collections|CollectionNames|Databases|DatabaseNames)", field: `\$readPreference`,
			ours: `-|\{mode: "primaryPreferred"\}`, where: ".*/(secondaryPreferred|tags|nearest)"},
			right: "reference", section: "Server Selection, Use of read preferences with commands; Enumerating Collections, Replica Sets; Enumerating Databases, Replica Sets",
			reason: "the commands run on the primary and ignore the client's read preference; the Go driver passes it on"},
		{of: difference{driver: "go", op: "list(Collections|CollectionNames|Databases|DatabaseNames)", field: "filter", ours: none, theirs: `\{\}`},
			right: "both", section: "Enumerating Collections, Driver methods",
			reason: "the Go driver's methods have no call without a filter, and an empty one selects all"},
		{of: difference{driver: "go", op: "findOne", field: "limit", ours: `\{"\$numberInt":"1"\}`, theirs: `\{"\$numberLong":"1"\}`},
			right: "both", section: "CRUD, FindOptions", reason: "servers take any integer type"},
		{of: difference{driver: "go", op: "findLimit", command: "getMore", field: "batchSize",
			ours: `\{"\$numberInt":"1"\}`, theirs: `\{"\$numberInt":"3"\}`},
			right: "reference", section: "Find, getMore and killCursors commands, Behavior of Limit, skip and batchSize",
			reason: "of limit 4 one document is left after a batch of 3, and the example there asks for it; the Go driver asks for a whole batch"},
		{of: difference{driver: "go", where: ".*/timeoutMS", command: "find|aggregate|killCursors|create|dropDatabase", field: "maxTimeMS",
			ours: "64-bit integer", theirs: none},
			right: "reference", section: "Client Side Operations Timeout, Command Execution; Cursors",
			reason: "every command has maxTimeMS but getMore and the commands of cursors in mode ITERATION; the Go driver leaves it out where a cursor comes of the command, for killCursors, create and dropDatabase"},
		{of: difference{driver: "go", op: "close", command: "endSessions", field: `\$readPreference`, ours: `\{mode: "primaryPreferred"\}`, theirs: none},
			right: "reference", section: "Driver Sessions, endSessions; Server Selection, Topology type: Single",
			reason: "both select by primaryPreferred; a command that may reach a secondary passes the preference"},
		{of: difference{driver: "go", op: "abortTransaction", where: ".*/(secondaryPreferred|tags|nearest)", field: "commands",
			ours: "", theirs: "(find )?abortTransaction"},
			right: "reference", section: "Transactions, readPreference; abortTransaction",
			reason: "the read is refused for its read preference, so nothing was sent in the transaction, and nothing is aborted; the Go driver has marked it in progress by then, and asks a standalone all the same"},
	}
}

// pythonDifferences is the same for PyMongo.
func pythonDifferences() []explanation {
	const none = "-"
	return []explanation{
		{of: difference{driver: "pymongo", where: ".*/timeoutMS", command: "killCursors", field: "maxTimeMS", ours: "64-bit integer", theirs: none},
			right: "reference", section: "Client Side Operations Timeout, Command Execution; Cursors",
			reason: "timeoutMS is refreshed for killCursors; PyMongo sends it without a limit"},
		{of: difference{driver: "pymongo", where: ".*/timeoutMS", field: "maxTimeMS", ours: "64-bit integer", theirs: "32-bit integer"},
			right: "both", section: "Client Side Operations Timeout, Command Execution", reason: "servers take any integer type"},
		{of: difference{driver: "pymongo", op: "find(Limit|Negative)", field: "limit", ours: `\{"\$numberLong":".*"\}`, theirs: `\{"\$numberInt":".*"\}`},
			right: "both", section: "CRUD, FindOptions", reason: "servers take any integer type"},
		{of: difference{driver: "pymongo", command: "update", field: "updates", theirs: ".*multi: false.*|.*upsert: false.*"},
			right: "both", section: "CRUD, Update vs. Replace Validation", reason: "PyMongo sends the server's defaults"},
		{of: difference{driver: "pymongo", command: "dropDatabase", field: "comment", ours: none, theirs: "null"},
			right: "both", section: "dropDatabase command", reason: "PyMongo sends null for a comment that was not given; to servers it is the same"},
		{of: difference{driver: "pymongo", command: "findAndModify", field: "new|upsert", ours: none, theirs: "false"},
			right: "both", section: "CRUD, Find And Modify", reason: "PyMongo sends the server's defaults"},
		{of: difference{driver: "pymongo", command: "createIndexes", field: "indexes", theirs: `\[\{name: "a_1", key: .*\}\]`},
			right: "both", section: "Index Management, Common API", reason: "the order of fields in the model of an index is free"},
		{of: difference{driver: "pymongo", where: "direct primary/.*", command: "find|create|createIndexes|drop|dropIndexes", field: `\$readPreference`,
			ours: `\{mode: "primaryPreferred"\}`, theirs: none},
			right: "reference", section: "Server Selection, Topology type: Single",
			reason: "a direct connection has any member answer; PyMongo does not say so for writes, nor in a transaction"},
		{of: difference{driver: "pymongo", where: "sharded/.*", command: "abortTransaction", field: "recoveryToken", ours: `\{\}`, theirs: none},
			right: "both", section: "Transactions, recoveryToken field",
			reason: "the embedded deployment's token is empty, and PyMongo leaves an empty one out"},
	}
}
