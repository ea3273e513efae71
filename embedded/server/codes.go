package server

import (
	"github.com/unified-test-runner/utr/embedded/command"
)

// codeName is the name of an error code in a version.
func (p Profile) codeName(code int32) string {
	if p.Wire < 9 {
		if name, ok := codeNamesBefore44[code]; ok {
			return name
		}
	}
	if p.Wire < 25 && code == 64 {
		return "WriteConcernFailed"
	}
	if since, ok := codeSince[code]; ok && p.Wire < since {
		return command.Unnamed(code)
	}
	return command.CodeName(code)
}

// codeSince says from which wire version a name exists, where that matters.
var codeSince = map[int32]int{
	347: 13, 348: 13, 351: 13, 352: 13, 354: 13,
	365: 17, 371: 17, 391: 21, 402: 21, 433: 25, 449: 27, 462: 27,
	40413: 17, 40414: 17, 40415: 17, 50768: 17,
}

// codeNamesBefore44 are the names that were changed for 4.4.
var codeNamesBefore44 = map[int32]string{
	10107: "NotMaster", 13435: "NotMasterNoSlaveOk", 13436: "NotMasterOrSecondary",
}

// in reports whether a code is in a category, and known in the version at all.
func (p Profile) in(code int32, category command.Category) bool {
	return p.Wire >= codeSince[code] && category.Has(code)
}
