package replay

// dataDifferences are those of the scenarios about data.
var dataDifferences = []difference{
	{"replica-set", "retryable writes: records", []int{24}, "the message quotes an entry of the oplog in the form of its storage, which we do not keep"},
	{"sharded", "retryable writes: records", []int{24}, "the message quotes an entry of the oplog in the form of its storage, which we do not keep"},
	{"replica-set", "change streams", []int{6, 7, 8}, "the real members needed a moment to replicate each write: three getMores saw one event each, where the first of ours sees all"},
	{"sharded", "change streams", []int{6, 7, 8, 9}, "the real shards needed a moment to agree on the time: the second getMore saw the events, where the first of ours does; the tokens of steps 8 and 9 come from it"},
}
