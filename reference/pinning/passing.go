package pinning

import (
	"errors"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/reference/retry"
	"github.com/unified-test-runner/utr/reference/selection"
)

// PassingRules lists the rules about read preferences that an application passes, and that are sent with commands. They
// apply to all topologies, so Next does not apply them.
func PassingRules() []retry.Rule {
	return []retry.Rule{
		rule("P10", "Mode primary cannot be combined with tags.", "Errors"),
		rule("P23", "The slaveOk bit is set in all reads except those with mode primary. OP_MSG does not have this bit: read preference "+
			"secondaryPreferred, which means the same to mongos, replaces it.", "slaveOk"),
		rule("P24", "$readPreference is sent only to a mongos, and not with mode primary or with secondaryPreferred without tags, "+
			"for which the bit suffices.", "Communication with mongos"),
		rule("P26", "slaveOk=true means secondaryPreferred; a value for both slaveOk and the read preference is an error.",
			"slaveOk"),
	}
}

// The messages of the errors of an application (Errors; slaveOk).
const (
	taggedPrimary = "PRIMARY cannot be combined with tags"
	BothSlaveOk   = "slaveOk is deprecated, use ReadPreference."
)

// Validate returns an error if a read preference is invalid for every topology (P10).
func Validate(p selection.Preference) error {
	if p.Reads() == selection.Primary && p.Tagged() {
		return errors.New(taggedPrimary)
	}
	return p.Validate()
}

// Pass returns the read preference to send with a read, and whether to send one at all (P23, P24).
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

// obeying lists the commands that obey a read preference regardless of their arguments. In 2014, find was OP_QUERY.
var obeying = []string{"find", "group", "collStats", "dbStats", "count", "distinct", "geoNear", "geoSearch",
	"geoWalk", "text", "parallelCollectionScan"}

// Obeys reports whether a generic command obeys a read preference (P25).
func Obeys(command bson.D) bool {
	if len(command) == 0 {
		return false
	}
	field := func(name string) any {
		if i := slices.IndexFunc(command, func(e bson.E) bool { return e.Key == name }); i >= 0 {
			return command[i].Value
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
		return slices.Contains(obeying, name)
	}
}
