package selection

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Mode says which members of a replica set are candidates for reads.
type Mode string

// The modes, spelled as $readPreference has them.
const (
	Primary            Mode = "primary"
	PrimaryPreferred   Mode = "primaryPreferred"
	Secondary          Mode = "secondary"
	SecondaryPreferred Mode = "secondaryPreferred"
	Nearest            Mode = "nearest"
)

// ModeOf gives the mode of a name whose first letter may have any case: suites and
// test files have both.
func ModeOf(name string) Mode {
	if name == "" {
		return ""
	}
	return Mode(strings.ToLower(name[:1]) + name[1:])
}

// Preference is a read preference. The zero value is the default: primary.
type Preference struct {
	Mode Mode // "" means primary
	// TagSets are tried in order; the first that matches a candidate counts.
	// An empty list, as well as an empty tag set, matches every server.
	TagSets []map[string]string
	// MaxStalenessSeconds is the greatest replication lag that a secondary
	// may have. Nil and -1 mean that there is no maximum.
	MaxStalenessSeconds *int64
	// Hedge is hedge.enabled, deprecated since server 8.0. Nil: not sent.
	Hedge *bool
}

// The figures that the specifications fix.
const (
	// DefaultLocalThreshold is the default of localThresholdMS.
	DefaultLocalThreshold = 15 * time.Millisecond
	// smallestMaxStaleness is the least maxStalenessSeconds that a replica
	// set accepts (Max Staleness, "smallestMaxStalenessSeconds").
	smallestMaxStaleness = 90 * time.Second
	// idleWritePeriod is how often an idle primary writes a no-op, which
	// bounds how fresh a secondary can look (Max Staleness,
	// "idleWritePeriodMS").
	idleWritePeriod = 10 * time.Second
)

// invalid is the error of a read preference that can never be served, whatever
// the servers do: the operation has to fail at once, instead of waiting.
func invalid(format string, args ...any) error {
	return fmt.Errorf("read preference is not valid: "+format, args...)
}

// Reads gives the mode, primary if none is set.
func (p Preference) Reads() Mode {
	if p.Mode == "" {
		return Primary
	}
	return p.Mode
}

// maxStaleness gives the maximum, and whether there is one.
func (p Preference) maxStaleness() (time.Duration, bool) {
	if p.MaxStalenessSeconds == nil || *p.MaxStalenessSeconds == -1 {
		return 0, false
	}
	const most = math.MaxInt64 / int64(time.Second) // what a Duration can hold
	return time.Duration(max(-most, min(most, *p.MaxStalenessSeconds))) * time.Second, true
}

// Tagged reports whether there is a tag set that demands anything.
func (p Preference) Tagged() bool {
	return slices.ContainsFunc(p.TagSets, func(t map[string]string) bool { return len(t) > 0 })
}

// Validate reports what is wrong with the preference on its own, before any
// topology is known.
func (p Preference) Validate() error {
	switch p.Reads() {
	case PrimaryPreferred, Secondary, SecondaryPreferred, Nearest:
		return nil
	case Primary:
	default:
		return invalid("there is no mode %q", p.Mode)
	}
	// "Clients MUST raise an error if a non-empty tag set is given in
	// tag_sets and the mode field is 'primary'" (Server Selection, "tag_sets").
	if p.Tagged() {
		return invalid("mode primary cannot have tag sets")
	}
	if d, ok := p.maxStaleness(); ok && d > 0 {
		return invalid("mode primary cannot have maxStalenessSeconds")
	}
	return nil
}

// validateStaleness applies the minimum that holds for replica sets alone:
// other topologies hand the value on, or ignore it (Server Selection,
// "maxStalenessSeconds").
func (p Preference) validateStaleness(topology TopologyType, heartbeat time.Duration) error {
	most, ok := p.maxStaleness()
	if !ok || (topology != ReplicaSetWithPrimary && topology != ReplicaSetNoPrimary) {
		return nil
	}
	if most < smallestMaxStaleness {
		return invalid("maxStalenessSeconds is %d, and the least that a replica set accepts is %d",
			*p.MaxStalenessSeconds, smallestMaxStaleness/time.Second)
	}
	if most < heartbeat+idleWritePeriod {
		return invalid("maxStalenessSeconds is %d, less than heartbeatFrequencyMS %d and idleWritePeriodMS %d together",
			*p.MaxStalenessSeconds, heartbeat.Milliseconds(), idleWritePeriod.Milliseconds())
	}
	return nil
}

// Document gives the preference as $readPreference writes it (Server
// Selection, "Document structure"). Tags are in the order of their names.
func (p Preference) Document() bson.D {
	doc := bson.D{{Key: "mode", Value: string(p.Reads())}}
	if p.Reads() == Primary {
		return doc // nothing else may be there
	}
	if len(p.TagSets) > 0 {
		tags := make(bson.A, len(p.TagSets))
		for i, set := range p.TagSets {
			t := bson.D{}
			for _, name := range slices.Sorted(maps.Keys(set)) {
				t = append(t, bson.E{Key: name, Value: set[name]})
			}
			tags[i] = t
		}
		doc = append(doc, bson.E{Key: "tags", Value: tags})
	}
	if _, ok := p.maxStaleness(); ok {
		doc = append(doc, bson.E{Key: "maxStalenessSeconds", Value: shortest(*p.MaxStalenessSeconds)})
	}
	if p.Hedge != nil {
		doc = append(doc, bson.E{Key: "hedge", Value: bson.D{{Key: "enabled", Value: *p.Hedge}}})
	}
	return doc
}

// shortest writes a number as an int32 where it fits, as drivers do.
func shortest(n int64) any {
	if n == int64(int32(n)) {
		return int32(n)
	}
	return n
}
