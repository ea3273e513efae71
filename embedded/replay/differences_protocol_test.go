package replay

// protocolDifferences are those of the scenarios about the protocol.
var protocolDifferences = []difference{}
