package replay

// dataDifferences are those of the scenarios about data.
var dataDifferences = []difference{}
