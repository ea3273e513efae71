package reference

import (
	"cmp"
	"fmt"
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
	is := func(name, value string) func(enginekit.Option) bool {
		return func(o enginekit.Option) bool {
			return enginekit.SameOption(o.Name, name) && (value == "" || o.Value == value)
		}
	}
	s := settings{scope: scope{modeOf: selection.ModeOf, validate: selection.Preference.Validate}}
	u.Options, s.warnings = ignoreInvalid(u.Options, p.Pinning != "")
	u.Options = slices.DeleteFunc(u.Options, is("maxStalenessSeconds", "-1")) // no maximum
	if p.Pinning != "" {
		s.modeOf, s.validate = pinning.ModeOf, pinning.Validate
		if u.Options, err = currentOptions(u.Options); err != nil {
			return s, nil, err
		}
	}
	direct := slices.ContainsFunc(u.Options, is("directConnection", "true"))
	if direct {
		// A direct connection has one seed and no set name (Unified Test Format, "entity").
		u.Options = slices.DeleteFunc(u.Options, is("directConnection", ""))
		u.Options = slices.DeleteFunc(u.Options, is("replicaSet", ""))
	}
	given, err := connstring.Parse(u.String())
	if err != nil {
		return settings{}, nil, err
	}
	given.RetryReads = given.RetryReads || !given.RetryReadsSet
	given.RetryWrites = given.RetryWrites || !given.RetryWritesSet && !p.RetryWritesOff
	if !given.ServerSelectionTimeoutSet {
		given.ServerSelectionTimeout = 30 * time.Second
	}
	if !given.LocalThresholdSet {
		given.LocalThreshold = selection.DefaultLocalThreshold
	}
	s.ConnString = given
	s.preference = selection.Preference{Mode: selection.Mode(given.ReadPreference), TagSets: given.ReadPreferenceTagSets}
	if given.MaxStalenessSet {
		seconds := int64(given.MaxStaleness / time.Second)
		s.preference.MaxStalenessSeconds = &seconds
	}
	s.readConcern = addIf(nil, given.ReadConcernLevel != "", "level", given.ReadConcernLevel)
	s.writeConcern = addIf(nil, given.WNumberSet, "w", int32(given.WNumber))
	s.writeConcern = addIf(s.writeConcern, !given.WNumberSet && given.WString != "", "w", given.WString)
	s.writeConcern = addIf(s.writeConcern, given.JSet, "j", given.J)
	if given.TimeoutSet {
		s.timeout = &given.Timeout
	}
	if given.MaxAdaptiveRetriesSet {
		retries := int(given.MaxAdaptiveRetries)
		s.maxAdaptiveRetries = &retries
	}
	for name, values := range given.UnknownOptions { // unknown to the Go driver
		n, _ := strconv.ParseInt(values[len(values)-1], 10, 64)
		spelt := enginekit.Spelling(uriOptions, name)
		switch {
		case name == "waitqueuetimeoutms":
			s.waitQueueTimeout = time.Duration(n) * time.Millisecond
		case name == "wtimeoutms":
			s.writeConcern = append(s.writeConcern, bson.E{Key: "wtimeout", Value: n})
		case name == "waitqueuesize", spelt != "" && specified(name):
			return s, nil, unsupported("uriOptions." + cmp.Or(spelt, "waitQueueSize"))
		default: // (Connection String, "Keys")
			s.warnings = append(s.warnings, fmt.Sprintf("Unsupported option '%s'.", cmp.Or(spelt, name)))
		}
	}
	if err := s.validate(s.preference); err != nil {
		return s, nil, err
	}
	for _, name := range []string{"readPreference", "readPreferenceTags", "maxStalenessSeconds"} {
		u.Options = slices.DeleteFunc(u.Options, is(name, "")) // the Go driver rejects mode primary with an empty tag set
	}
	o := options.Client().ApplyURI(u.String())
	o.HeartbeatInterval, o.Timeout = nil, nil // the Go driver rejects a short heartbeat
	if err := o.Validate(); err != nil {
		return s, nil, err
	}
	if direct {
		o.SetDirect(true).SetHosts(o.Hosts[:1])
	}
	return s, o, nil
}
