package replay

// protocolDifferences are those of the scenarios about the protocol.
var protocolDifferences = []difference{
	{"replica-set", "diagnostics", []int{12, 13}, "the real server held the databases of earlier tests"},
	{"sharded", "diagnostics", []int{12, 13}, "the real cluster held the databases of earlier tests"},
	{"replica-set", "diagnostics", []int{17}, "serverStatus: fewer sections, for no storage engine is behind them; the recording is shortened, too"},
	{"sharded", "diagnostics", []int{17}, "serverStatus: fewer sections, for no storage engine is behind them; the recording is shortened, too"},
	{"standalone", "diagnostics", []int{17}, "serverStatus: fewer sections, for no storage engine is behind them; the recording is shortened, too"},
	{"replica-set", "message sections and flags", []int{1}, "the real server had the collection from an earlier recording"},
}
