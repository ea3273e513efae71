package pinning

import (
	"slices"

	"github.com/unified-test-runner/utr/reference/retry"
	"github.com/unified-test-runner/utr/reference/selection"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// PassingRules are the rules of what commands say of a read preference, and of which
// commands have one.
func PassingRules() []retry.Rule {
	rule := func(id, statement, section string) retry.Rule {
		return retry.Rule{ID: id, Statement: statement, Section: "Driver Read Preferences, " + section, Revision: "2014-02-14"}
	}
	return []retry.Rule{
		rule("P23", "The slaveOk bit is set in all reads but those with mode primary. OP_MSG has no such bit: read preference secondaryPreferred, "+
			"for which mongos takes it, stands for it.", "slaveOk"),
		rule("P24", "$readPreference is sent to a mongos alone, and not with mode primary, nor with secondaryPreferred without tags: "+
			"the bit says the same to every mongos.", "Communication with mongos"),
		rule("P25", "Of generic commands, only some obey a read preference; all others run on the primary.", "Generic Command Helper"),
	}
}

// Pass gives the read preference to send with a read, and whether to send one at all
// (P23, P24).
func Pass(p selection.Preference, mongos bool) (selection.Preference, bool) {
	bit := selection.Preference{Mode: selection.SecondaryPreferred}
	switch {
	case p.Mode == "" || p.Mode == selection.Primary:
		return selection.Preference{}, false
	case !mongos, p.Mode == bit.Mode && !p.Tagged():
		return bit, true
	}
	return selection.Preference{Mode: p.Mode, TagSets: p.TagSets}, true
}

// obeying are the commands that obey a read preference whatever their arguments.
var obeying = []string{"group", "collStats", "dbStats", "count", "distinct", "geoNear", "geoSearch", "geoWalk", "text", "parallelCollectionScan"}

// Obeys reports whether a generic command obeys a read preference (P25). The query of then
// is a find now.
func Obeys(command bson.D) bool {
	if len(command) == 0 {
		return false
	}
	field := func(name string) any {
		for _, e := range command {
			if e.Key == name {
				return e.Value
			}
		}
		return nil
	}
	switch name := command[0].Key; name {
	case "mapReduce", "mapreduce":
		out, _ := field("out").(bson.D)
		return len(out) > 0 && out[0].Key == "inline"
	case "aggregate":
		stages, _ := field("pipeline").(bson.A)
		return !slices.ContainsFunc(stages, func(stage any) bool {
			d, _ := stage.(bson.D)
			return len(d) > 0 && d[0].Key == "$out"
		})
	default:
		return name == "find" || slices.Contains(obeying, name)
	}
}
