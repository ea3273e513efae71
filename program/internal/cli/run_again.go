package cli

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs"
)

// The kinds of flags of utr run: the command that runs a test again repeats the flags of the first two kinds.
const (
	onTest      = "what a test does"
	onVerdict   = "how it is judged"
	onSelection = "which tests run, and when"
	onOutput    = "what is shown"
)

// runFlagKinds returns the kind of each flag of utr run, in the order of the command that runs a test again.
func runFlagKinds() []flagKind {
	return []flagKind{
		{onTest, []string{"engine", "engines", "policy", "backoff", "reseed"}},
		{onVerdict, []string{"timeout", "deadline", "known-failing", "require-fail-points", "retry-failed", "count"}},
		{onTest, []string{"members", "mongoses", "auth", "server-api", "fail-points", "tls", "uri-option",
			"orchestration", "orchestration-version", "orchestration-files", "cluster", "local", "local-shards", "uri",
			"single-uri", "overwrite", "wait-for-lock"}},
		// deploymentArgs repeats them for the deployment of the test: auto and all leave it open.
		{onSelection, []string{"topology", "server-version"}},
		{onSelection, []string{"run", "skip", "shard", "durations", "dry-run", "jobs", "clusters", "min-tests",
			"fail-fast", "shuffle", "watch"}},
		{onOutput, []string{"lock-name", "otlp", "verbose", "quiet", "timings", "slowest", "annotations", "json", "junit",
			"tap", "sarif", "markdown", "html", "badge", "earlier", "events", "cell"}},
	}
}

type flagKind struct {
	affects string
	flags   []string
}

// rerun returns a function that returns the command line for one test. It repeats the flags without secrets.
func (r *runFlags) rerun(c *invocation) func(result.TestID) []string {
	fixed := []string{"utr", "run"}
	for _, k := range runFlagKinds() {
		if k.affects == onTest || k.affects == onVerdict {
			fixed = append(fixed, c.secrets.texts(r.flags.args(k.flags...))...)
		}
	}
	return func(id result.TestID) []string {
		args := slices.Clone(fixed)
		if r.flags.target() != onURI {
			args = append(args, r.deploymentArgs(id.Deployment)...)
		}
		path := id.File
		if path == stdinName {
			path = specs.Stdin
		}
		args = append(args, "--run", "^"+quotePattern(id.File+": "+id.Description)+"$")
		if strings.HasPrefix(path, "-") && path != specs.Stdin {
			args = append(args, "--")
		}
		return append(args, path)
	}
}

// quotePattern returns a regular expression for a text, without control characters, because they affect terminals.
func quotePattern(text string) string {
	var b strings.Builder
	for _, c := range regexp.QuoteMeta(text) {
		if unicode.IsGraphic(c) && c != utf8.RuneError {
			b.WriteRune(c)
		} else {
			fmt.Fprintf(&b, `\x{%x}`, c)
		}
	}
	return b.String()
}

// stdinName is the file name of a suite from standard input.
const stdinName = "<stdin>"

// deploymentArgs returns the flags for the deployment with a short name, such as "replicaset 8.0".
func (r *runFlags) deploymentArgs(name string) []string {
	topology, version, words := r.deployment.topology, r.deployment.Version, append(strings.Fields(name), "", "")
	if slices.Contains([]string{"single", "replicaset", "sharded", "load-balanced"}, words[0]) {
		topology = words[0]
	}
	if _, err := specs.ParseVersion(words[1]); err == nil && (version == "" || version == deployment.AnyVersion) {
		version = words[1]
	}
	var args []string
	if topology != topologyAuto {
		args = append(args, "--topology", topology)
	}
	if version != "" && r.flags.target() == onEmbedded { // other servers have their own
		args = append(args, "--server-version", version)
	}
	return args
}
