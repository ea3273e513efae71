package reference

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/reference/retry"
	"github.com/unified-test-runner/utr/reference/selection"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// settings are the client options that the engine serves itself. Those of the
// connection (hosts, TLS, authentication, pool, …) stay in the connection
// string for the topology.
type settings struct {
	retryReads, retryWrites bool
	readPreference          selection.Preference
	readConcern             bson.D // nil: the server's default
	writeConcern            bson.D // nil: the server's default
	timeout                 *time.Duration
	serverSelectionTimeout  time.Duration
	waitQueueTimeout        time.Duration // 0: none
	localThreshold          time.Duration
	heartbeat               time.Duration // 0: not set
	socketTimeout           time.Duration // 0: none
	maxAdaptiveRetries      *int
	overloadRetargeting     bool
	monitoring              string // serverMonitoringMode, "" if not set
}

// defaultSettings are those of drivers that follow the policy.
func defaultSettings(p *retry.Policy) settings {
	return settings{
		retryReads: true, retryWrites: !p.RetryWritesOff,
		serverSelectionTimeout: 30 * time.Second,
		localThreshold:         selection.DefaultLocalThreshold,
	}
}

// ownOptions are the URI options that settings take, by lower-case name. A
// function gets the values in the order in which they were given.
func ownOptions() map[string]func(*settings, []string) error {
	last := func(set func(*settings, string) error) func(*settings, []string) error {
		return func(s *settings, v []string) error { return set(s, v[len(v)-1]) }
	}
	number := func(of string, least int64, set func(*settings, int64)) func(*settings, []string) error {
		return last(func(s *settings, v string) error {
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil || n < least {
				return fmt.Errorf("%q is not a number of %s", v, of)
			}
			set(s, n)
			return nil
		})
	}
	millis := func(set func(*settings, time.Duration)) func(*settings, []string) error {
		return number("milliseconds", 0, func(s *settings, n int64) { set(s, time.Duration(n)*time.Millisecond) })
	}
	boolean := func(set func(*settings, bool)) func(*settings, []string) error {
		return last(func(s *settings, v string) error {
			if v != "true" && v != "false" { // ParseBool takes more
				return fmt.Errorf("%q is neither true nor false", v)
			}
			set(s, v == "true")
			return nil
		})
	}
	concern := func(s *settings, key string, value any) {
		s.writeConcern = append(slices.Clip(s.writeConcern), bson.E{Key: key, Value: value})
	}
	return map[string]func(*settings, []string) error{
		"retryreads":                boolean(func(s *settings, b bool) { s.retryReads = b }),
		"retrywrites":               boolean(func(s *settings, b bool) { s.retryWrites = b }),
		"enableoverloadretargeting": boolean(func(s *settings, b bool) { s.overloadRetargeting = b }),
		"timeoutms":                 millis(func(s *settings, d time.Duration) { s.timeout = &d }),
		"serverselectiontimeoutms":  millis(func(s *settings, d time.Duration) { s.serverSelectionTimeout = d }),
		"waitqueuetimeoutms":        millis(func(s *settings, d time.Duration) { s.waitQueueTimeout = d }),
		"localthresholdms":          millis(func(s *settings, d time.Duration) { s.localThreshold = d }),
		"heartbeatfrequencyms":      millis(func(s *settings, d time.Duration) { s.heartbeat = d }),
		"sockettimeoutms":           millis(func(s *settings, d time.Duration) { s.socketTimeout = d }),
		"maxadaptiveretries": number("retries", 0, func(s *settings, n int64) {
			retries := int(n)
			s.maxAdaptiveRetries = &retries
		}),
		"readconcernlevel": last(func(s *settings, v string) error {
			s.readConcern = bson.D{{Key: "level", Value: v}}
			return nil
		}),
		"w": last(func(s *settings, v string) error {
			if n, err := strconv.ParseInt(v, 10, 32); err == nil {
				concern(s, "w", int32(n))
			} else {
				concern(s, "w", v)
			}
			return nil
		}),
		"journal":    boolean(func(s *settings, b bool) { concern(s, "j", b) }),
		"wtimeoutms": millis(func(s *settings, d time.Duration) { concern(s, "wtimeout", d.Milliseconds()) }),
		"readpreference": last(func(s *settings, v string) error {
			s.readPreference.Mode = selection.Mode(v)
			return nil
		}),
		"maxstalenessseconds": number("seconds", math.MinInt64, func(s *settings, n int64) { s.readPreference.MaxStalenessSeconds = &n }),
		"readpreferencetags":  readTags,
		"servermonitoringmode": last(func(s *settings, v string) error {
			s.monitoring = v
			if !slices.Contains([]string{"auto", "poll", "stream"}, v) {
				return fmt.Errorf("the mode %q is unknown", v)
			}
			return nil
		}),
		"waitqueuesize": func(*settings, []string) error { return unsupported("uriOptions.waitQueueSize") },
	}
}

// readTags reads readPreferenceTags, of which each is a tag set.
func readTags(s *settings, values []string) error {
	s.readPreference.TagSets = nil
	for _, one := range values {
		set := map[string]string{}
		for _, pair := range strings.FieldsFunc(one, func(r rune) bool { return r == ',' }) {
			name, value, ok := strings.Cut(pair, ":")
			if !ok {
				return fmt.Errorf("tag %q has no value", pair)
			}
			set[name] = value
		}
		s.readPreference.TagSets = append(s.readPreference.TagSets, set)
	}
	return nil
}

// resolve applies uriOptions on top of a connection string, and both on top of
// the defaults. It gives the engine's settings, and the connection string with
// what is left for the topology. Errors never repeat the string, which may hold
// a password.
func resolve(uri string, options bson.Raw, s settings) (settings, string, error) {
	u, err := enginekit.ParseURI(uri, options)
	if err != nil {
		return s, "", err
	}
	own := ownOptions()
	values := map[string][]string{}
	var order []string
	direct := false
	u.Options = slices.DeleteFunc(u.Options, func(o enginekit.Option) bool {
		direct = direct || enginekit.SameOption(o.Name, "directConnection") && o.Value == "true"
		key := strings.ToLower(o.Name)
		if own[key] == nil {
			return false
		}
		if values[key] == nil {
			order = append(order, key)
		}
		values[key] = append(values[key], o.Value)
		return true
	})
	for _, key := range order {
		if err := own[key](&s, values[key]); err != nil {
			return s, "", fmt.Errorf("URI option %s: %w", key, err)
		}
	}
	if err := s.readPreference.Validate(); err != nil {
		return s, "", err
	}
	if direct {
		// A direct connection has one seed and no set name (Unified Test
		// Format, "entity").
		u.Options = slices.DeleteFunc(u.Options, func(o enginekit.Option) bool { return enginekit.SameOption(o.Name, "replicaSet") })
		u.Base = firstHost(u.Base)
	}
	return s, u.String(), nil
}

// firstHost leaves one host in a connection string without options.
func firstHost(base string) string {
	scheme, rest, _ := strings.Cut(base, "://")
	user := ""
	if i := strings.LastIndex(rest, "@"); i >= 0 {
		user, rest = rest[:i+1], rest[i+1:]
	}
	hosts, database, _ := strings.Cut(rest, "/")
	host, _, _ := strings.Cut(hosts, ",")
	return scheme + "://" + user + host + "/" + database
}
