package selection

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Mode is a read preference mode.
type Mode string

// The modes, spelled as in $readPreference.
const (
	Primary            Mode = "primary"
	PrimaryPreferred   Mode = "primaryPreferred"
	Secondary          Mode = "secondary"
	SecondaryPreferred Mode = "secondaryPreferred"
	Nearest            Mode = "nearest"
)

// Modes lists the modes.
func Modes() []Mode {
	return []Mode{Primary, PrimaryPreferred, Secondary, SecondaryPreferred, Nearest}
}

// ModeOf returns the mode with a name whose first letter may be upper case, as in specification tests. It returns an
// unknown name as it is.
func ModeOf(name string) Mode {
	for _, m := range Modes() {
		if len(name) == len(m) && strings.EqualFold(name[:1], string(m[:1])) && name[1:] == string(m[1:]) {
			return m
		}
	}
	return Mode(name)
}

// UnmarshalText reads a mode like ModeOf.
func (m *Mode) UnmarshalText(name []byte) error {
	*m = ModeOf(string(name))
	return nil
}

// Preference is a read preference. The zero value is the default: primary.
type Preference struct {
	Mode Mode `yaml:"mode"` // "" means primary
	// TagSets are tried in order until one matches a candidate. An empty list and an empty tag set match every server.
	TagSets []map[string]string `yaml:"tag_sets"`
	// MaxStalenessSeconds is the maximum replication lag of a secondary. Nil and -1 mean no maximum.
	MaxStalenessSeconds *int64 `yaml:"maxStalenessSeconds"`
	// Hedge is hedge.enabled, deprecated since server 8.0. Nil: not sent.
	Hedge *bool `yaml:"-"`
}

// Constants of the specifications.
const (
	// DefaultLocalThreshold is the default of localThresholdMS.
	DefaultLocalThreshold = 15 * time.Millisecond
	// smallestMaxStaleness is the minimum of maxStalenessSeconds for replica sets (Server
	// Selection, "smallestMaxStalenessSeconds").
	smallestMaxStaleness = 90 * time.Second
	// idleWritePeriod is how often an idle primary writes a no-op (Max Staleness, "idleWritePeriodMS").
	idleWritePeriod = 10 * time.Second
)

// invalid returns the error for a read preference that no server can ever satisfy. The operation fails at once
// instead of waiting.
func invalid(format string, args ...any) error {
	return fmt.Errorf("invalid read preference: "+format, args...)
}

// Reads returns the mode, or Primary if it is not set.
func (p Preference) Reads() Mode { return cmp.Or(p.Mode, Primary) }

// maxStaleness returns the maximum staleness, or false if none is set.
func (p Preference) maxStaleness() (time.Duration, bool) {
	if p.MaxStalenessSeconds == nil || *p.MaxStalenessSeconds == -1 {
		return 0, false
	}
	const most = math.MaxInt64 / int64(time.Second) // the limit of a Duration
	return time.Duration(max(-most, min(most, *p.MaxStalenessSeconds))) * time.Second, true
}

// Tagged reports whether any tag set is not empty.
func (p Preference) Tagged() bool {
	return slices.ContainsFunc(p.TagSets, func(t map[string]string) bool { return len(t) > 0 })
}

// Validate returns an error if the preference is invalid for every topology.
func (p Preference) Validate() error {
	switch p.Reads() {
	case PrimaryPreferred, Secondary, SecondaryPreferred, Nearest:
		return nil
	case Primary:
	default:
		return invalid("unknown mode %q", p.Mode)
	}
	if p.Tagged() { // (Server Selection, "tag_sets")
		return invalid("mode primary cannot have tag sets")
	}
	if d, ok := p.maxStaleness(); ok && d > 0 {
		return invalid("mode primary cannot have maxStalenessSeconds")
	}
	return nil
}

// validateStaleness checks maxStalenessSeconds against the minimum for replica sets. Other topologies pass the
// value on or ignore it (Server Selection, "maxStalenessSeconds").
func (p Preference) validateStaleness(topology TopologyType, heartbeat time.Duration) error {
	most, ok := p.maxStaleness()
	if !ok || (topology != ReplicaSetWithPrimary && topology != ReplicaSetNoPrimary) {
		return nil
	}
	if most < smallestMaxStaleness {
		return invalid("maxStalenessSeconds is %d, but the minimum for a replica set is %d",
			*p.MaxStalenessSeconds, smallestMaxStaleness/time.Second)
	}
	if most < heartbeat+idleWritePeriod {
		return invalid("maxStalenessSeconds is %d, less than the sum of heartbeatFrequencyMS %d and idleWritePeriodMS %d",
			*p.MaxStalenessSeconds, heartbeat.Milliseconds(), idleWritePeriod.Milliseconds())
	}
	return nil
}

// Document returns the preference as a $readPreference document (Server Selection, "Document structure"), with
// tags sorted by name.
func (p Preference) Document() bson.D {
	doc := bson.D{{Key: "mode", Value: string(p.Reads())}}
	if p.Reads() == Primary {
		return doc // no other field is allowed
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

// shortest returns the number as an int32 if it fits, as drivers send it.
func shortest(n int64) any {
	if n == int64(int32(n)) {
		return int32(n)
	}
	return n
}

// Pass returns the $readPreference to send with a read to a server of this type, and whether to send one at all
// (Server Selection, "Passing read preference to mongos and load balancers" and "Topology type: Single"). Writes never
// have one. Since 4.2, only the first hello is sent as OP_QUERY, so the SecondaryOk flag needs no rule.
func Pass(topology TopologyType, server ServerType, p Preference) (Preference, bool) {
	switch {
	case topology == Unknown, topology == Single && server == Standalone:
		return Preference{}, false
	case p.Reads() != Primary:
		return p, true
	case topology == Single && server != Mongos:
		return Preference{Mode: PrimaryPreferred}, true // so that a secondary accepts the read
	}
	return Preference{}, false
}
