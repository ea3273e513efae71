package reference

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/connstring"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/reference/pinning"
	"github.com/unified-test-runner/utr/reference/retry"
	"github.com/unified-test-runner/utr/reference/selection"
)

// settings are the client options that the engine implements itself. The topology implements hosts, TLS,
// authentication, pools and others.
type settings struct {
	*connstring.ConnString // with defaults, except HeartbeatInterval
	scope
	waitQueueTimeout   time.Duration // 0: none
	maxAdaptiveRetries *int
	warnings           []string // about ignored options
}

// resolve merges the defaults of a policy, a connection string and uriOptions, in ascending precedence, into the
// engine's settings and the options of the topology. Errors never contain the connection string, which may contain a
// password.
func resolve(uri string, uriOptions bson.Raw, p *retry.Policy) (settings, *options.ClientOptions, error) {
	u, err := enginekit.ParseURI(uri, uriOptions)
	if err != nil {
		return settings{}, nil, err
	}
	s := settings{scope: scope{modeOf: selection.ModeOf, validate: selection.Preference.Validate}}
	u.Options, s.warnings = ignoreInvalid(u.Options, p.Pinning != "")
	u.Options = slices.DeleteFunc(u.Options, named("maxStalenessSeconds", "-1")) // no maximum
	if p.Pinning != "" {
		s.modeOf, s.validate = pinning.ModeOf, pinning.Validate
		if u.Options, err = currentOptions(u.Options); err != nil {
			return s, nil, err
		}
	}
	direct := slices.ContainsFunc(u.Options, named("directConnection", "true"))
	if direct { // one seed and no set name (Unified Test Format, "entity")
		u.Options = removed(u.Options, "directConnection", "replicaSet")
	}
	if s.ConnString, err = connstring.Parse(u.String()); err != nil {
		return settings{}, nil, err
	}
	s.applyDefaults(p)
	s.applyConcerns()
	if err := s.applyOthers(uriOptions); err != nil {
		return s, nil, err
	}
	if err := s.validate(s.preference); err != nil {
		return s, nil, err
	}
	o, err := topologyOptions(u, direct)
	return s, o, err
}

// named matches an option, with a value unless it is "".
func named(name, value string) func(enginekit.Option) bool {
	return func(o enginekit.Option) bool {
		return enginekit.SameOption(o.Name, name) && (value == "" || o.Value == value)
	}
}

func removed(given []enginekit.Option, names ...string) []enginekit.Option {
	for _, name := range names {
		given = slices.DeleteFunc(given, named(name, ""))
	}
	return given
}

func (s *settings) applyDefaults(p *retry.Policy) {
	given := s.ConnString
	given.RetryReads = given.RetryReads || !given.RetryReadsSet
	given.RetryWrites = given.RetryWrites || !given.RetryWritesSet && !p.RetryWritesOff
	if !given.ServerSelectionTimeoutSet {
		given.ServerSelectionTimeout = 30 * time.Second
	}
	if !given.LocalThresholdSet {
		given.LocalThreshold = selection.DefaultLocalThreshold
	}
	if given.TimeoutSet {
		s.timeout = &given.Timeout
	}
	if given.MaxAdaptiveRetriesSet {
		retries := int(given.MaxAdaptiveRetries)
		s.maxAdaptiveRetries = &retries
	}
}

// applyConcerns sets the read preference, the read concern and the write concern.
func (s *settings) applyConcerns() {
	given := s.ConnString
	s.preference = selection.Preference{Mode: selection.Mode(given.ReadPreference), TagSets: given.ReadPreferenceTagSets}
	if given.MaxStalenessSet {
		seconds := int64(given.MaxStaleness / time.Second)
		s.preference.MaxStalenessSeconds = &seconds
	}
	s.readConcern = addIf(nil, given.ReadConcernLevel != "", "level", given.ReadConcernLevel)
	s.writeConcern = addIf(nil, given.WNumberSet, "w", int32(given.WNumber))
	s.writeConcern = addIf(s.writeConcern, !given.WNumberSet && given.WString != "", "w", given.WString)
	s.writeConcern = addIf(s.writeConcern, given.JSet, "j", given.J)
}

// applyOthers applies the options that the Go driver does not know.
func (s *settings) applyOthers(uriOptions bson.Raw) error {
	for _, name := range slices.Sorted(maps.Keys(s.UnknownOptions)) {
		values := s.UnknownOptions[name]
		n, _ := strconv.ParseInt(values[len(values)-1], 10, 64)
		spelt := enginekit.Spelling(uriOptions, name)
		switch {
		case name == "waitqueuetimeoutms":
			s.waitQueueTimeout = time.Duration(n) * time.Millisecond
		case name == "wtimeoutms":
			s.writeConcern = append(s.writeConcern, bson.E{Key: "wtimeout", Value: n})
		case name == "waitqueuesize", spelt != "" && specified(name):
			return unsupported("uriOptions." + cmp.Or(spelt, "waitQueueSize"))
		default: // (Connection String, "Keys")
			s.warnings = append(s.warnings, fmt.Sprintf("Unsupported option '%s'.", cmp.Or(spelt, name)))
		}
	}
	return nil
}

// topologyOptions returns the options of the topology, without values that only the engine supports.
func topologyOptions(u enginekit.URI, direct bool) (*options.ClientOptions, error) {
	// The Go driver rejects mode primary with an empty tag set.
	u.Options = removed(u.Options, "readPreference", "readPreferenceTags", "maxStalenessSeconds")
	o := options.Client().ApplyURI(u.String())
	o.HeartbeatInterval, o.Timeout = nil, nil // the Go driver rejects a short heartbeat
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if direct {
		o.SetDirect(true).SetHosts(o.Hosts[:1])
	}
	return o, nil
}
