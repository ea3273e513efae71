package reference

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/reference/selection"
)

// valid reports whether an option of a connection string has a value that URI Options, "List of specified options",
// accepts. It accepts any value of other options, and of those whose value is text.
func valid(o enginekit.Option) bool {
	name := strings.ToLower(o.Name)
	if least, ok := integers[name]; ok {
		n, err := strconv.ParseInt(o.Value, 10, 32)
		return err == nil && n >= least && (name != "zlibcompressionlevel" || n <= 9)
	}
	if values, ok := words[name]; ok {
		return slices.Contains(values, o.Value)
	}
	switch name {
	case "readpreferencetags":
		return o.Value == "" || !slices.ContainsFunc(strings.Split(o.Value, ","),
			func(tag string) bool { return !strings.Contains(tag, ":") })
	case "w":
		n, err := strconv.ParseInt(o.Value, 10, 64)
		return o.Value != "" && (err != nil || n >= 0 && n <= math.MaxInt32)
	}
	return true
}

// integers has the least value of each option that is an integer. Tests have shorter heartbeats than the specification
// allows.
var integers = map[string]int64{
	"connecttimeoutms": 0, "heartbeatfrequencyms": 1, "localthresholdms": 0, "maxadaptiveretries": 0, "maxconnecting": 1,
	"maxidletimems": 0, "maxpoolsize": 0, "maxstalenessseconds": -1, "minpoolsize": 0, "proxyport": 0,
	"serverselectiontimeoutms": 0, "sockettimeoutms": 0, "srvmaxhosts": 0, "timeoutms": 0, "waitqueuemultiple": 1,
	"waitqueuesize": 0, "waitqueuetimeoutms": 0, "wtimeoutms": 0, "zlibcompressionlevel": -1,
}

// words has the values of each option that has a fixed set of them. Booleans are "true" and "false": other spellings
// are for legacy only (Connection String, "Values").
var words = func() map[string][]string {
	out := map[string][]string{
		"servermonitoringmode": {"stream", "poll", "auto"},
		"readpreference": {string(selection.Primary), string(selection.PrimaryPreferred), string(selection.Secondary),
			string(selection.SecondaryPreferred), string(selection.Nearest)},
	}
	for name := range strings.FieldsSeq(`directconnection enableoverloadretargeting journal loadbalanced retryreads
		retrywrites serverselectiontryonce ssl tls tlsallowinvalidcertificates tlsallowinvalidhostnames
		tlsdisablecertificaterevocationcheck tlsdisableocspendpointcheck tlsinsecure`) {
		out[name] = []string{"true", "false"}
	}
	return out
}()

// ignoreInvalid removes the options with an invalid value, and returns a warning for each (Connection String,
// "Values"). Under the policies of 2014, an invalid read preference is an error.
func ignoreInvalid(given []enginekit.Option, of2014 bool) (kept []enginekit.Option, warnings []string) {
	for _, o := range given {
		if valid(o) || of2014 && strings.HasPrefix(strings.ToLower(o.Name), "readpreference") {
			kept = append(kept, o)
			continue
		}
		warnings = append(warnings, fmt.Sprintf("Unsupported value for %q : %q", o.Name, o.Value))
	}
	return kept, warnings
}

// specified reports whether a specification has an option, in lower case. A suite with an option that the engine does
// not support is skipped; any other option is unknown.
func specified(name string) bool {
	_, number := integers[name]
	_, word := words[name]
	return number || word || strings.HasPrefix(name, "proxy") || name == "slaveok" ||
		name == "secondaryacceptablelatencyms"
}
